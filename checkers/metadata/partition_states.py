"""The state of every partition by the metadata log, version by version.

A PartitionRecord states a partition whole. Each PartitionChangeRecord after it changes what it
names and makes the next version: the partition epoch grows by one, and the leader epoch by one if
the record names a leader, be it the same one (KIP-631; `PartitionRegistration.merge` in Kafka). So
a shrink of the ISR bumps the leader epoch where the release says so by naming the leader (3.3 to
3.5), and does not where it leaves the leader out. A change that states its epochs, as those of the
ZooKeeper generation do, is believed.

A ClearElrRecord (4.x) empties the ELR of a topic, or of all; it makes a version of each partition
that had one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import zip_longest
from typing import Final, Protocol, TypeVar

from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.records import MetadataRecord
from fencepost.checkers.rows import OPEN_NS

NO_LEADER: Final = -1
_RECOVERING: Final = 1


class Cause(StrEnum):
    """The kind of record that made a version."""

    SNAPSHOT = "snapshot"
    """None that is still there: what was before is known only in sum."""
    CREATED = "created"
    CHANGED = "changed"
    CLEARED = "cleared"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionVersion:
    """A partition as it was from one metadata offset on."""

    metadata_offset: int
    timestamp_ms: int
    controller_epoch: int
    cause: Cause
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    """The `replicas` that a reassignment under way has added."""
    removing: tuple[int, ...]
    """The `replicas` that it is to remove."""
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    recovering: bool
    """Its leader was elected uncleanly and has not recovered yet."""

    @property
    def isr_text(self) -> str:
        """The ISR as Kafka's tools write it."""
        return f"[{', '.join(map(str, self.isr))}]"


@dataclass(slots=True, kw_only=True)
class PartitionHistory:
    """All versions of one partition of one incarnation of its topic."""

    topic: str
    topic_id: str
    partition: int
    versions: list[PartitionVersion] = field(default_factory=list)
    deleted_ms: int | None = None
    """The time when its topic was deleted."""
    decided_until_ms: int | None = None
    """The time from which nothing is decided for it: its topic is to be deleted, or is. None: it
    goes on.
    """

    @property
    def key(self) -> str:
        """Its topic-partition."""
        return f"{self.topic}-{self.partition}"

    @property
    def deleted(self) -> bool:
        """Return whether its topic had been deleted by the end."""
        return self.deleted_ms is not None

    @property
    def last(self) -> PartitionVersion:
        """The version in the end."""
        return self.versions[-1]

    @property
    def elected_uncleanly(self) -> bool:
        """Return whether some election was recorded as unclean, so that records may be lost."""
        return any(version.recovering for version in self.versions)

    def steps(self) -> Iterator[tuple[PartitionVersion, PartitionVersion]]:
        """Return each version but the first, with the one before it."""
        return zip(self.versions, self.versions[1:], strict=False)

    def by_epoch(self) -> Mapping[int, int]:
        """Return the place of the version with each partition epoch; of several, the last one's."""
        return {version.partition_epoch: place for place, version in enumerate(self.versions)}


class _Timed(Protocol):
    @property
    def timestamp_ms(self) -> int: ...


_Version = TypeVar("_Version", bound=_Timed)


def spans_in_force(
    versions: Sequence[_Version], facts: Facts
) -> Iterator[tuple[_Version, int, int]]:
    """Yield each version with the span of time, in ns, in which it may have been in force.

    From the earliest moment at which its record can have been appended to the latest at which the
    next one's can; `OPEN_NS`: none follows.
    """
    for version, following in zip_longest(versions, versions[1:]):
        until_ns = OPEN_NS if following is None else facts.latest_ns(following.timestamp_ms)
        yield version, facts.earliest_ns(version.timestamp_ms), until_ns


def key_of(topic: str | None, partition: int | None) -> str:
    """Return the key of a topic-partition."""
    return f"{topic}-{partition}"


def partition_histories(
    records: Iterable[MetadataRecord],
) -> Mapping[tuple[str, int], PartitionHistory]:
    """Return the history of each (topic id, partition), out of a log in its order."""
    names: dict[str, str] = {}
    living: dict[str | None, set[str]] = {}
    """The topic ids of each name that are not removed yet."""
    histories: dict[tuple[str, int], PartitionHistory] = {}
    removed_ms: dict[str, int] = {}
    doomed_ms: dict[str, int] = {}
    for record in records:
        if record.type == "TopicRecord" and record.topic_id:
            name = names[record.topic_id] = record.topic or record.topic_id
            living.setdefault(name, set()).add(record.topic_id)
        elif record.type == "RemoveTopicRecord" and record.topic_id:
            removed_ms[record.topic_id] = record.timestamp_ms
            living.get(names.get(record.topic_id), set()).discard(record.topic_id)
        elif record.type == "TopicDeletionRecord":
            mine = living.get(record.topic, ())
            doomed_ms.update((topic_id, record.timestamp_ms) for topic_id in mine)
        elif record.type == "ClearElrRecord":
            _clear(record, histories, removed=removed_ms)
        elif record.type in ("PartitionRecord", "PartitionChangeRecord"):
            _apply(record, histories, names)
    for history in histories.values():
        history.deleted_ms = removed_ms.get(history.topic_id)
        history.decided_until_ms = doomed_ms.get(history.topic_id, history.deleted_ms)
    return histories


def _apply(
    record: MetadataRecord,
    histories: dict[tuple[str, int], PartitionHistory],
    names: Mapping[str, str],
) -> None:
    assert record.topic_id is not None
    assert record.partition is not None
    place = (record.topic_id, record.partition)
    if record.type == "PartitionRecord":
        topic = names.get(record.topic_id, record.topic or record.topic_id)
        history = histories.setdefault(
            place,
            PartitionHistory(topic=topic, topic_id=record.topic_id, partition=record.partition),
        )
        history.versions.append(_stated(record))
    elif place in histories:
        history = histories[place]
        history.versions.append(_changed(history.last, record))


def _stated(record: MetadataRecord) -> PartitionVersion:
    return PartitionVersion(
        metadata_offset=record.metadata_offset,
        timestamp_ms=record.timestamp_ms,
        controller_epoch=record.controller_epoch,
        cause=Cause.SNAPSHOT if record.snapshot else Cause.CREATED,
        replicas=record.replicas or (),
        adding=record.adding or (),
        removing=record.removing or (),
        isr=record.isr or (),
        elr=record.elr or (),
        last_known_elr=record.last_known_elr or (),
        leader=NO_LEADER if record.leader is None else record.leader,
        leader_epoch=record.leader_epoch or 0,
        partition_epoch=record.partition_epoch or 0,
        recovering=record.leader_recovery_state == _RECOVERING,
    )


def _changed(before: PartitionVersion, record: MetadataRecord) -> PartitionVersion:
    named = record.leader is not None
    return PartitionVersion(
        metadata_offset=record.metadata_offset,
        timestamp_ms=record.timestamp_ms,
        controller_epoch=record.controller_epoch,
        cause=Cause.CHANGED,
        replicas=before.replicas if record.replicas is None else record.replicas,
        adding=before.adding if record.adding is None else record.adding,
        removing=before.removing if record.removing is None else record.removing,
        isr=before.isr if record.isr is None else record.isr,
        elr=before.elr if record.elr is None else record.elr,
        last_known_elr=(
            before.last_known_elr if record.last_known_elr is None else record.last_known_elr
        ),
        leader=before.leader if record.leader is None else record.leader,
        leader_epoch=(
            before.leader_epoch + named if record.leader_epoch is None else record.leader_epoch
        ),
        partition_epoch=(
            before.partition_epoch + 1 if record.partition_epoch is None else record.partition_epoch
        ),
        recovering=(
            before.recovering
            if record.leader_recovery_state is None
            else record.leader_recovery_state == _RECOVERING
        ),
    )


def _clear(
    record: MetadataRecord,
    histories: Mapping[tuple[str, int], PartitionHistory],
    *,
    removed: Collection[str],
) -> None:
    for history in histories.values():
        last = history.last
        mine = record.topic in (None, "", history.topic) and history.topic_id not in removed
        if mine and (last.elr or last.last_known_elr):
            history.versions.append(
                replace(
                    last,
                    metadata_offset=record.metadata_offset,
                    timestamp_ms=record.timestamp_ms,
                    controller_epoch=record.controller_epoch,
                    cause=Cause.CLEARED,
                    elr=(),
                    last_known_elr=(),
                    partition_epoch=last.partition_epoch + 1,
                )
            )
