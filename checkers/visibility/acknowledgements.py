"""The metadata offsets that brokers acknowledge, and the brokers that must have done so at a time.

A broker acknowledges a metadata offset by a heartbeat that says it has applied it. That heartbeat
counts from when it was passed on to any controller, whatever that answered, and only under the
broker epoch that it names: a broker that registers anew begins again. A fetch of the metadata log
acknowledges nothing, since what lies in a broker's log need not be applied.

A broker has to have acknowledged what a controller says of all unfenced brokers if it was unfenced
all through the time in which the controller can have said so, and if that controller knew: the
record that unfenced it was written before the controller's term began, or the controller itself had
told it so.

Source: KIP-631, heartbeats; the draft that adds LowestAcknowledgedOffset to BrokerHeartbeat.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.metadata.beats import ABSENT, TapedHeartbeats
from fencepost.checkers.metadata.broker_states import BrokerHistory, BrokerVersion
from fencepost.checkers.metadata.sessions import Term
from fencepost.checkers.metadata.view import MetadataView

SOURCE: Final = (
    "the draft that adds LowestAcknowledgedOffset to BrokerHeartbeat, Read-after-write visibility"
)
"""The source of the rules about what brokers acknowledge."""

_NOTHING: Final = -1

_Registration = tuple[int, int]
"""(broker id, broker epoch)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """An unfenced broker, and what it had acknowledged."""

    broker_id: int
    broker_epoch: int
    acknowledged: int
    """The highest metadata offset; -1: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Acknowledged:
    """The heartbeats of a registration: when each was passed on, and the highest offset by then."""

    time_ns: NDArray[np.int64]
    offset: NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spans:
    """The versions of a broker id, each with bounds of the time from which on it was in force."""

    versions: tuple[BrokerVersion, ...]
    surely_ns: NDArray[np.int64]
    perhaps_ns: NDArray[np.int64]

    def all_through(self, from_ns: int, until_ns: int) -> BrokerVersion | None:
        """Return the version in force from the one to the other; None if that is not sure."""
        place = int(np.searchsorted(self.surely_ns, from_ns, side="right")) - 1
        if place < 0:
            return None
        is_last = place + 1 == len(self.versions)
        return self.versions[place] if is_last or self.perhaps_ns[place + 1] > until_ns else None


class Acknowledgements:
    """The acknowledgements in a run's heartbeats."""

    def __init__(self, seen: MetadataView, beats: TapedHeartbeats) -> None:
        self._terms = seen.terms_of_nodes
        self._log_end_ns = seen.known_until_ns
        self._spans = {one.broker_id: _spans(one, seen) for one in seen.brokers.values()}
        self._acknowledged = _acknowledged(beats)
        self._told_unfenced = _told_unfenced(beats)

    def bound(self, controller: str, *, from_ns: int, until_ns: int) -> Iterator[Bound]:
        """Yield the brokers that this controller surely held for unfenced between these times.

        With what they had acknowledged at the later one.
        """
        if until_ns > self._log_end_ns:
            return
        term = self._terms.surely_begun(controller, from_ns)
        for broker_id, spans in self._spans.items():
            version = spans.all_through(from_ns, until_ns)
            if version is None or version.fenced or not version.registered:
                continue
            if self._knew(controller, term, broker_id, version, from_ns):
                yield self._bound(broker_id, version.broker_epoch, until_ns)

    def unfenced(self, *, from_ns: int, until_ns: int) -> Iterator[Bound]:
        """Yield the brokers that were unfenced between these times by the metadata log."""
        for broker_id, spans in self._spans.items() if until_ns <= self._log_end_ns else ():
            version = spans.all_through(from_ns, until_ns)
            if version is not None and version.registered and not version.fenced:
                yield self._bound(broker_id, version.broker_epoch, until_ns)

    def _knew(
        self,
        controller: str,
        term: Term | None,
        broker_id: int,
        version: BrokerVersion,
        time_ns: int,
    ) -> bool:
        if term is not None and version.metadata_offset < term.begin_offset:
            return True
        told_ns = self._told_unfenced.get((broker_id, version.broker_epoch, controller))
        return told_ns is not None and told_ns <= time_ns

    def _bound(self, broker_id: int, broker_epoch: int, time_ns: int) -> Bound:
        known = self._acknowledged.get((broker_id, broker_epoch))
        offset = _NOTHING
        if known is not None and (place := bisect_right(known.time_ns, time_ns)):
            offset = int(known.offset[place - 1])
        return Bound(broker_id=broker_id, broker_epoch=broker_epoch, acknowledged=offset)


def _spans(broker: BrokerHistory, seen: MetadataView) -> _Spans:
    surely = [seen.facts.latest_ns(one.timestamp_ms) for one in broker.versions]
    perhaps = [seen.facts.earliest_ns(one.timestamp_ms) for one in broker.versions]
    # Clocks of several controllers may differ: a version is in force after all earlier ones.
    return _Spans(
        versions=tuple(broker.versions),
        surely_ns=np.maximum.accumulate(np.array(surely, dtype=np.int64)),
        perhaps_ns=np.minimum.accumulate(np.array(perhaps, dtype=np.int64)[::-1])[::-1],
    )


def _acknowledged(beats: TapedHeartbeats) -> Mapping[_Registration, _Acknowledged]:
    said = np.flatnonzero((beats.reached_ns != ABSENT) & (beats.applied != ABSENT))
    found = {}
    for place, mine in _by_registration(beats, said):
        order = mine[np.lexsort((beats.applied[mine], beats.reached_ns[mine]))]
        found[place] = _Acknowledged(
            time_ns=beats.reached_ns[order], offset=np.maximum.accumulate(beats.applied[order])
        )
    return found


def _by_registration(
    beats: TapedHeartbeats, places: NDArray[np.int64]
) -> Iterator[tuple[_Registration, NDArray[np.int64]]]:
    """Yield these heartbeats by (broker id, broker epoch)."""
    order = places[np.lexsort((beats.broker_epoch[places], beats.broker_id[places]))]
    ids, epochs = beats.broker_id[order], beats.broker_epoch[order]
    changes = np.flatnonzero((np.diff(ids) != 0) | (np.diff(epochs) != 0)) + 1
    for mine in np.split(order, changes) if len(order) else ():
        yield (int(beats.broker_id[mine[0]]), int(beats.broker_epoch[mine[0]])), mine


def _told_unfenced(beats: TapedHeartbeats) -> Mapping[tuple[int, int, str], int]:
    """Return when a controller first told each registration that it is not fenced."""
    told = np.flatnonzero(beats.told_unfenced)
    found: dict[tuple[int, int, str], int] = {}
    for place, mine in _by_registration(beats, told):
        for target in np.unique(beats.target[mine]).tolist():
            first_ns = beats.answered_ns[mine[beats.target[mine] == target]].min()
            found[*place, beats.nodes[target]] = int(first_ns)
    return found
