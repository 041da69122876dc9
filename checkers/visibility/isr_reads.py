"""Reads of partitions, each with the versions that it may have shown.

A version is what the metadata log of record says of a partition from one metadata offset on. A read
showed one with its leader, its leader epoch, and its ISR and replicas as sets. Several versions may
be equal in these: then the read showed one between the first and the last of them that were there
when it returned. No version is there before its timestamp or that of an earlier one. Where the read
tells its metadata offset, and the version in force there is one of them, it showed that one: an
offset is never believed against what was shown.

Left out are reads that say nothing here: those of an error, those of what no version was
(nonlinearizable-isr judges these), and those that returned after the end of the log, which may show
a version that it does not have. Where the log begins with a snapshot, what was before is known only
in sum: a read in the leader epoch of that sum may have shown something older that looked the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.partition_reads import (
    UNTOLD,
    PartitionReads,
    ShownState,
    partition_reads,
)
from fencepost.checkers.metadata.partition_states import Cause, PartitionHistory, PartitionVersion
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.proof import Proof
from fencepost.checkers.visibility.newer import NONE, first_known_above

_OLDER: Final = -1
"""The place that stands for something before the first version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrReads:
    """The reads of one partition, as parallel arrays."""

    history: PartitionHistory
    read: NDArray[np.int64]
    node: NDArray[np.object_]
    call_ns: NDArray[np.int64]
    return_ns: NDArray[np.int64]
    first: NDArray[np.int64]
    """The place of the first version that it may have shown; -1: one before all."""
    last: NDArray[np.int64]
    """The place of the last one."""

    def oldest(self, row: int) -> PartitionVersion:
        """Return the first version that one of the reads may have shown."""
        return self.history.versions[int(self.first[row])]

    def newest(self, row: int) -> PartitionVersion:
        """Return the last version that it may have shown."""
        return self.history.versions[int(self.last[row])]

    def clause(self, row: int) -> Proof:
        """Return what the read showed, as a clause of a proof."""
        version = self.newest(row)
        return Proof.of(
            "{key} with leader {leader}, leader epoch {leader_epoch} and ISR {isr} (read {read})",
            values={"read": int(self.read[row])},
            key=self.history.key,
            leader=version.leader,
            leader_epoch=version.leader_epoch,
            isr=version.isr_text,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Reads of a partition against what others had shown before they were called."""

    stale: NDArray[np.int64]
    """The rows of those that showed something older."""
    newer: NDArray[np.int64]
    """The row of the read that had shown something newer, for each of them."""
    case_count: int
    """The number of reads before which more than the first version had been shown."""

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Return (stale, newer), row by row."""
        return zip(self.stale.tolist(), self.newer.tolist(), strict=True)


def compared(reads: IsrReads, *, claims: NDArray[np.int64], asking: NDArray[np.int64]) -> Compared:
    """Compare some rows of the reads, `asking`, with others of them, `claims`."""

    def newer_than(places: NDArray[np.int64]) -> NDArray[np.int64]:
        return first_known_above(
            reads.first[claims],
            reads.return_ns[claims],
            asked=places,
            before_ns=reads.call_ns[asking],
        )

    newer = newer_than(reads.last[asking])
    lacks = newer != NONE
    return Compared(
        stale=asking[lacks],
        newer=claims[newer[lacks]],
        case_count=int(np.count_nonzero(newer_than(np.zeros_like(asking)) != NONE)),
    )


def found_backward(
    check: str, reads: IsrReads, answers: Sequence[Compared], *, showed: str
) -> Found:
    """Return the findings on a partition: the reads that showed an older version than others had.

    `showed`: the words for the broker of the older one, {old_node}, where it is another.
    """
    pairs = [pair for answer in answers for pair in answer.pairs()]
    cases = sum(answer.case_count for answer in answers)

    def proof(number: int) -> Proof:
        stale, newer = pairs[number]
        old, new = reads.newest(stale), reads.oldest(newer)
        named = {"old_node": reads.node[stale]} if "{old_node}" in showed else {}
        return Proof.of(
            "{node} showed {new}, which is of metadata offset {metadata_offset} at least, to a "
            f"read that returned at {{return_}}; {showed}{{old}}, which is of metadata offset "
            "{old_metadata_offset} at most, to one that was called at {call}",
            metadata_offsets={
                "metadata_offset": new.metadata_offset,
                "old_metadata_offset": old.metadata_offset,
            },
            times={"return_": int(reads.return_ns[newer]), "call": int(reads.call_ns[stale])},
            node=reads.node[newer],
            new=reads.clause(newer),
            **named,
            old=reads.clause(stale),
        )

    return found(check, reads.history.key, cases=cases, never=np.arange(len(pairs)), proof=proof)


def isr_reads(describes: pa.Table, seen: MetadataView) -> Iterator[IsrReads]:
    """Yield the reads in DESCRIBES of every partition that ever changed, by creation."""
    by_partition = partition_reads(describes)
    for place, history in seen.partitions.items():
        reads = by_partition.get(place)
        if len(history.versions) > 1 and reads is not None:
            known = reads.take(reads.return_ns < seen.known_until_ns)
            if len(known):
                yield _matched(_Versions(history, seen.facts), known)


def _matched(versions: "_Versions", reads: PartitionReads) -> IsrReads:
    first, last = (np.full(len(reads), NONE) for _ in range(2))
    for shown, rows in reads.by_state():
        first[rows], last[rows] = versions.shown(
            shown, return_ns=reads.return_ns[rows], told=reads.metadata_offset[rows]
        )
    kept = last != NONE
    return IsrReads(
        history=versions.history,
        read=reads.read[kept],
        node=reads.node[kept],
        call_ns=reads.call_ns[kept],
        return_ns=reads.return_ns[kept],
        first=first[kept],
        last=last[kept],
    )


class _Versions:
    """The versions of a partition by what a read shows of them."""

    def __init__(self, history: PartitionHistory, facts: Facts) -> None:
        self.history = history
        self._versions = history.versions
        earliest = [facts.earliest_ns(one.timestamp_ms) for one in history.versions]
        self._there_ns = np.maximum.accumulate(np.array(earliest, dtype=np.int64))
        self._offsets = np.array([one.metadata_offset for one in history.versions])
        first = history.versions[0]
        self._sum_epoch = first.leader_epoch if first.cause is Cause.SNAPSHOT else _OLDER
        self._places: dict[tuple[int | None, frozenset[int]], list[int]] = {}
        for place, version in enumerate(history.versions):
            state = (version.leader, frozenset(version.isr))
            self._places.setdefault(state, []).append(place)

    def shown(
        self, shown: ShownState, *, return_ns: NDArray[np.int64], told: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the places of the first and the last version that reads may have shown.

        `told`: the metadata offsets that they tell. NONE, both, of one that showed no version.
        """
        able = () if shown.isr is None else self._places.get((shown.leader, frozenset(shown.isr)))
        places = np.array([one for one in able or () if self._fits(one, shown)], dtype=np.int64)
        there = np.searchsorted(self._there_ns, return_ns, side="right")
        count = np.searchsorted(places, there)
        if not len(places):
            return np.full(len(told), NONE), np.full(len(told), NONE)
        older = self._versions[int(places[0])].leader_epoch <= self._sum_epoch
        first = np.where(count > 0, _OLDER if older else places[0], NONE)
        last = np.where(count > 0, places[count - 1], NONE)
        in_force = np.searchsorted(self._offsets, told, side="right") - 1
        sure = (told != UNTOLD) & np.isin(in_force, places) & (in_force <= last)
        return np.where(sure, in_force, first), np.where(sure, in_force, last)

    def _fits(self, place: int, shown: ShownState) -> bool:
        version = self._versions[place]
        return shown.leader_epoch in (None, version.leader_epoch) and (
            shown.replicas is None or frozenset(shown.replicas) == frozenset(version.replicas)
        )
