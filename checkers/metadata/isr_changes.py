"""Requests to change an ISR matched with partition versions: who asked for which version.

An AlterPartition names the partition epoch that it expects, and can make the next one only. It made
a version for certain if it was answered without an error by that version's epoch, or by
NEW_LEADER_ELECTED: it let in the last replica that a reassignment waited for, and with that its
sender lost the leadership. The version then has those of the asked ISR that stay replicas. A
request whose answer no client saw may have made a version or not.

An IsrChange (of the draft "Controller heartbeats, broker incarnation ids") names no partition
epoch, and is not answered with one. It can have made a version of the ISR that it asks for, at a
time between when it was passed on and when its answer was there. An incarnation id is the metadata
offset of its registration: a request that names one has made no version before that.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from operator import itemgetter
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.partition_states import PartitionHistory, PartitionVersion
from fencepost.checkers.metadata.remembered import remembered
from fencepost.checkers.metadata.rpcs import Rpc, rpcs
from fencepost.checkers.metadata.sessions import term_at
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.sources import Source

ISR_CHANGE: Final = "IsrChange"
_DEFINITE: Final = (
    "INVALID_UPDATE_VERSION",
    "INELIGIBLE_REPLICA",
    "UNKNOWN_TOPIC_ID",
    "UNKNOWN_TOPIC_OR_PARTITION",
)
"""The partition was looked at, and not changed. Other errors may come after the change: a
controller that loses its office answers NOT_CONTROLLER to what its successor may yet commit, and
old versions answer FENCED_LEADER_EPOCH to a change that elected a leader."""
_MOVED: Final = "NEW_LEADER_ELECTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The content of an AlterPartition for one partition."""

    source: str
    broker_epoch: int
    leader_epoch: int
    expected: int
    """The partition epoch that it names."""
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionProposals:
    """The requests that can have made one version."""

    sure: tuple[Rpc, ...]
    """Answered by this version's epoch. More than one is an anomaly of its own."""
    possible: tuple[Rpc, ...]
    """The requests without a known answer, or with an error that proves nothing."""


@dataclass(frozen=True)
class IsrRequests:
    """The AlterPartition items about one partition, in the order of arrival."""

    all: tuple[Rpc, ...]
    expecting: Mapping[int, tuple[Rpc, ...]]
    """The requests by the partition epoch that they expect."""

    def __iter__(self) -> Iterator[Rpc]:
        return iter(self.all)

    def under_way(self, isr: frozenset[int], *, from_ns: int, until_ns: int) -> Sequence[Rpc]:
        """Return those for an ISR that may have been decided between these times, by arrival.

        They had reached the controller by then, and were not answered before.
        """
        return self._by_isr[isr].under_way(from_ns, until_ns) if isr in self._by_isr else ()

    @cached_property
    def _by_isr(self) -> Mapping[frozenset[int], "_InTime"]:
        found: dict[frozenset[int], list[tuple[int, Rpc]]] = {}
        for place, rpc in enumerate(self.all):
            if rpc.reached_ns is not None:
                found.setdefault(frozenset(rpc.of("isr") or ()), []).append((place, rpc))
        return {isr: _InTime(several) for isr, several in found.items()}


class _InTime:
    """Requests that reached their target, each with its place, by when they did."""

    def __init__(self, reached: Iterable[tuple[int, Rpc]]) -> None:
        in_turn = sorted(reached, key=lambda one: one[1].reached_ns or 0)
        self._answered = [one for one in in_turn if one[1].answered_ns is not None]
        self._open = [one for one in in_turn if one[1].answered_ns is None]
        answered_ns = (rpc.answered_ns or 0 for _, rpc in self._answered)
        self._last_answered_ns = list(accumulate(answered_ns, max))
        """Of each of the answered and those before it, when the last one was."""

    def under_way(self, from_ns: int, until_ns: int) -> list[Rpc]:
        """Return those that had been reached by the end, and not answered before the beginning."""
        found = self._open[: _reached_by(self._open, until_ns)]
        place = _reached_by(self._answered, until_ns) - 1
        while place >= 0 and self._last_answered_ns[place] >= from_ns:
            if (self._answered[place][1].answered_ns or 0) >= from_ns:
                found.append(self._answered[place])
            place -= 1
        return [rpc for _, rpc in sorted(found, key=itemgetter(0))]


def _reached_by(in_turn: Sequence[tuple[int, Rpc]], time_ns: int) -> int:
    return bisect_right(in_turn, time_ns, key=lambda one: one[1].reached_ns or 0)


NO_REQUESTS: Final = IsrRequests((), {})


@remembered
def requests_by_partition(
    wire: pa.Table | Source,
    histories: Mapping[tuple[str, int], PartitionHistory],
    *,
    api: str = "AlterPartition",
) -> Mapping[tuple[str, int], IsrRequests]:
    """Return the items of requests to change ISRs by (topic id, partition), by arrival.

    Old versions name the topic; those are left out where two topics of the log had that name.
    """
    ids = ids_by_name(histories.values())
    found: dict[tuple[str, int], list[Rpc]] = {}
    for rpc in rpcs(wire, api):
        topic_id = rpc.of("topic_id")
        if topic_id is None:
            named = ids.get(rpc.of("topic"), set())
            topic_id = next(iter(named)) if len(named) == 1 else None
        if topic_id is not None and rpc.of("partition") is not None:
            found.setdefault((topic_id, rpc.of("partition")), []).append(rpc)
    return {place: _indexed(requests) for place, requests in found.items()}


def ids_by_name(histories: Iterable[PartitionHistory]) -> Mapping[str, set[str]]:
    """Return the ids of the topics that had each name."""
    ids: dict[str, set[str]] = {}
    for history in histories:
        ids.setdefault(history.topic, set()).add(history.topic_id)
    return ids


def _indexed(requests: Sequence[Rpc]) -> IsrRequests:
    expecting: dict[int, list[Rpc]] = {}
    for rpc in requests:
        expecting.setdefault(rpc.of("partition_epoch"), []).append(rpc)
    return IsrRequests(
        tuple(requests), {epoch: tuple(several) for epoch, several in expecting.items()}
    )


def proposals(version: PartitionVersion, requests: IsrRequests) -> VersionProposals:
    """Return the requests that made this version or may have."""
    expecting = [
        rpc
        for rpc in requests.expecting.get(version.partition_epoch - 1, ())
        if rpc.reached_ns is not None
    ]
    sure = [rpc for rpc in expecting if made(rpc) == version.partition_epoch]
    possible = [
        rpc
        for rpc in expecting
        if not rpc.ok
        # No client sees the answer to a copy that the proxy made.
        and (rpc.error not in (*_DEFINITE, _MOVED) or rpc.of("action") == "duplicated")
        and set(rpc.of("isr") or ()) & set(version.replicas) == set(version.isr)
    ]
    return VersionProposals(sure=tuple(sure), possible=tuple(possible))


def isr_changes(
    version: PartitionVersion,
    requests: IsrRequests,
    seen: MetadataView,
    decisions: "IsrDecisions",
) -> VersionProposals:
    """Return the IsrChanges that made this version or may have, by the time of its decision.

    A legacy leader may have written the version itself: then none is known to. So may a controller
    that leads: then only a request that can have made no other version made this one.
    """
    if seen.is_legacy(version.leader, version.metadata_offset):
        return VersionProposals(sure=(), possible=())
    fitting = _fitting(version, requests, seen)
    if fitting and _may_be_own(version, seen):
        fitting = [rpc for rpc in fitting if decisions.fitting_count(rpc) == 1]
    return VersionProposals(
        sure=tuple(rpc for rpc in fitting if rpc.ok),
        possible=tuple(rpc for rpc in fitting if rpc.response is None),
    )


def _may_be_own(version: PartitionVersion, seen: MetadataView) -> bool:
    """Return whether the controller that wrote a version may lead it, and so send no request."""
    term = term_at(seen.terms, version.metadata_offset)
    controller = None if term is None else seen.facts.node_ids.get(term.node)
    return controller is None or controller == version.leader


def _fitting(version: PartitionVersion, requests: IsrRequests, seen: MetadataView) -> Sequence[Rpc]:
    facts = seen.facts
    under_way = requests.under_way(
        frozenset(version.isr),
        from_ns=facts.earliest_ns(version.timestamp_ms),
        until_ns=facts.latest_ns(version.timestamp_ms),
    )
    return [rpc for rpc in under_way if _last_named(rpc) < version.metadata_offset]


def _last_named(rpc: Rpc) -> int:
    """Return the metadata offset of the latest registration that a request names."""
    return max(rpc.of("broker_epoch") or 0, *(rpc.of("isr_epochs") or ()), 0)


class IsrDecisions:
    """When the versions of one partition may have been decided, by their ISRs.

    A night has thousands of one partition, and as many requests.
    """

    def __init__(self, history: PartitionHistory, facts: Facts) -> None:
        self._history, self._facts = history, facts
        self._counts: dict[int, int] = {}
        """By the place of a request in memory: whoever asks has all of them."""

    def fitting_count(self, rpc: Rpc) -> int:
        """Return how many versions with its ISR a request can have made."""
        if id(rpc) not in self._counts:
            self._counts[id(rpc)] = self._count(rpc)
        return self._counts[id(rpc)]

    def _count(self, rpc: Rpc) -> int:
        isr = frozenset(rpc.of("isr") or ())
        if isr not in self._by_isr:
            return 0
        offsets, earliest_ns, latest_ns = self._by_isr[isr]
        answered_ns = OPEN_NS if rpc.answered_ns is None else rpc.answered_ns
        in_time = (latest_ns >= (rpc.reached_ns or 0)) & (earliest_ns <= answered_ns)
        return int(np.count_nonzero(in_time & (offsets > _last_named(rpc))))

    @cached_property
    def _by_isr(self) -> Mapping[frozenset[int], NDArray[np.int64]]:
        """(metadata offsets, earliest, latest ns) of the versions with each ISR."""
        found: dict[frozenset[int], list[tuple[int, int, int]]] = {}
        for one in self._history.versions:
            earliest_ns = self._facts.earliest_ns(one.timestamp_ms)
            latest_ns = self._facts.latest_ns(one.timestamp_ms)
            place = (one.metadata_offset, earliest_ns, latest_ns)
            found.setdefault(frozenset(one.isr), []).append(place)
        return {isr: np.array(several).T for isr, several in found.items()}


def made(rpc: Rpc) -> int | None:
    """Return the partition epoch that a request surely made; None if it made none or in doubt."""
    expected = rpc.of("partition_epoch")
    if rpc.error == _MOVED:
        return None if expected is None else int(expected) + 1
    if not rpc.ok:
        return None
    epoch = rpc.answered("partition_epoch")
    return epoch if epoch is not None and expected is not None and epoch > expected else None


def wish(rpc: Rpc) -> Wish:
    """Return the content of an AlterPartition for one partition."""
    return Wish(
        source=rpc.source,
        broker_epoch=rpc.of("broker_epoch"),
        leader_epoch=rpc.of("leader_epoch"),
        expected=rpc.of("partition_epoch"),
        isr=tuple(rpc.of("isr") or ()),
    )


def repeated_wishes(requests: IsrRequests, facts: Facts) -> frozenset[Wish]:
    """Return the wishes that were granted though they may have been fulfilled already.

    They were granted more than once, or by a later epoch than the one after the expected one.
    """
    if not facts.on_zookeeper:
        return frozenset()
    granted = Counter((wish(rpc), made(rpc)) for rpc in requests if made(rpc) is not None)
    return frozenset(
        one for (one, epoch), count in granted.items() if count > 1 or epoch != one.expected + 1
    )
