"""The state of every broker by the metadata log: registrations, fencing, controlled shutdown.

A RegisterBrokerRecord replaces what was known of a broker; its broker epoch is the offset it was
written at. BrokerRegistrationChangeRecords change what they name.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from fencepost.checkers.metadata.records import MetadataRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerVersion:
    """A broker as it was from one metadata offset on."""

    metadata_offset: int
    timestamp_ms: int
    registered: bool
    """False once it was unregistered."""
    registration_offset: int
    """The metadata offset of the registration that it goes back to."""
    broker_epoch: int
    incarnation_id: str | None
    fenced: bool
    in_controlled_shutdown: bool
    snapshot: bool

    @property
    def eligible(self) -> bool:
        """Return whether it may join an ISR (KIP-841)."""
        return self.registered and not self.fenced and not self.in_controlled_shutdown


@dataclass(slots=True, kw_only=True)
class BrokerHistory:
    """All versions of one broker id."""

    broker_id: int
    versions: list[BrokerVersion] = field(default_factory=list)
    _registrations: list[BrokerVersion] = field(default_factory=list, init=False)
    """Those of the versions that a registration began."""

    def add(self, version: BrokerVersion) -> None:
        """Note the next version."""
        self.versions.append(version)
        if version.metadata_offset == version.registration_offset:
            self._registrations.append(version)

    def before(self, metadata_offset: int) -> BrokerVersion | None:
        """Return the state just before this offset; None if nothing is known."""
        place = bisect_left(self.versions, metadata_offset, key=lambda one: one.metadata_offset)
        return self.versions[place - 1] if place else None

    def registrations(self) -> Sequence[BrokerVersion]:
        """Return the versions that a registration began, in order."""
        return self._registrations

    def registration_before(self, version: BrokerVersion) -> BrokerVersion | None:
        """Return the last registration before that of a version; None if none is known."""
        place = bisect_left(
            self._registrations, version.registration_offset, key=_registration_offset
        )
        return self._registrations[place - 1] if place else None

    def fenced_by_registration(self, place: int) -> BrokerVersion | None:
        """Return the registration whose own decision fenced the one before it, or None.

        A controller may write down that the old registration is fenced, and the new one then: both
        have one timestamp. `place`: of the version that is fenced.
        """
        following = self.versions[place + 1 : place + 2]
        if not following or not self.versions[place].fenced:
            return None
        made = following[0]
        anew = made.registration_offset == made.metadata_offset and not made.snapshot
        return made if anew and made.timestamp_ms == self.versions[place].timestamp_ms else None

    def first_of_incarnation(self, version: BrokerVersion) -> BrokerVersion:
        """Return the first registration of `version`'s incarnation, which may register again."""
        first = version
        place = bisect_right(
            self._registrations, version.registration_offset, key=_registration_offset
        )
        for one in (self._registrations[at] for at in range(place - 1, -1, -1)):
            same = one.incarnation_id is not None and one.incarnation_id == version.incarnation_id
            if not same and one.registration_offset != version.registration_offset:
                break
            first = one
        return first


def _registration_offset(version: BrokerVersion) -> int:
    return version.registration_offset


def broker_histories(records: Iterable[MetadataRecord]) -> Mapping[int, BrokerHistory]:
    """Return the history of each broker id, out of a log in its order."""
    histories: dict[int, BrokerHistory] = {}
    for record in records:
        if record.broker_id is None:
            continue
        history = histories.get(record.broker_id)
        version = _version(record, history.versions[-1] if history else None)
        if version is not None:
            history = histories.setdefault(
                record.broker_id, BrokerHistory(broker_id=record.broker_id)
            )
            history.add(version)
    return histories


def _version(record: MetadataRecord, before: BrokerVersion | None) -> BrokerVersion | None:
    if record.type == "RegisterBrokerRecord":
        return BrokerVersion(
            metadata_offset=record.metadata_offset,
            timestamp_ms=record.timestamp_ms,
            registered=True,
            registration_offset=record.metadata_offset,
            broker_epoch=record.metadata_offset
            if record.broker_epoch is None
            else record.broker_epoch,
            incarnation_id=record.incarnation_id,
            fenced=record.fenced is not False,
            in_controlled_shutdown=record.in_controlled_shutdown is True,
            snapshot=record.snapshot,
        )
    if before is None or record.type not in _CHANGES:
        return None
    return BrokerVersion(
        metadata_offset=record.metadata_offset,
        timestamp_ms=record.timestamp_ms,
        registered=record.type != "UnregisterBrokerRecord",
        registration_offset=before.registration_offset,
        broker_epoch=before.broker_epoch,
        incarnation_id=before.incarnation_id,
        fenced=before.fenced if record.fenced is None else record.fenced,
        in_controlled_shutdown=(
            before.in_controlled_shutdown
            if record.in_controlled_shutdown is None
            else record.in_controlled_shutdown
        ),
        snapshot=False,
    )


_CHANGES = frozenset(
    {
        "BrokerRegistrationChangeRecord",
        "FenceBrokerRecord",
        "UnfenceBrokerRecord",
        "UnregisterBrokerRecord",
    }
)
