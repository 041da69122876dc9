"""IsrChanges that a controller granted, and the ISR that was in force then.

An IsrChange (of the draft "Controller heartbeats, broker incarnation ids") names no version of the
partition, so it is no compare-and-set of the register that `nonlinearizable_isr` judges. But it is
a write: one that was answered without an error has been carried out, or asked for what was there.
So at some moment between when it was passed on and when its answer was there, the partition had the
ISR that it asked for.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from fencepost.checkers.facts import Facts
from fencepost.checkers.metadata.isr_changes import IsrRequests
from fencepost.checkers.metadata.partition_states import PartitionHistory, spans_in_force
from fencepost.checkers.metadata.rpcs import Rpc
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OPEN_NS


def granted_changes(
    history: PartitionHistory, requests: IsrRequests, seen: MetadataView, *, until_ns: int
) -> Iterator[Proof | None]:
    """Yield, of each change that was granted before `until_ns`, the proof that it was not made."""
    granted = [
        rpc
        for rpc in requests
        if rpc.ok and rpc.reached_ns is not None and (rpc.answered_ns or OPEN_NS) < until_ns
    ]
    in_force = _times_in_force(history, seen.facts) if granted else {}
    for rpc in granted:
        times = in_force.get(frozenset(rpc.of("isr") or ()))
        yield None if times is not None and times.overlap(rpc) else _proof(history, rpc)


@dataclass(frozen=True, slots=True)
class _TimesInForce:
    """The spans of time in which a partition may have had an ISR."""

    begin_ns: Sequence[int]
    """Ascending."""
    latest_end_ns: Sequence[int]
    """The latest end among the spans up to each."""

    def overlap(self, rpc: Rpc) -> bool:
        """Return whether one of them overlaps the time in which a request was under way."""
        assert rpc.reached_ns is not None
        begun = bisect_right(self.begin_ns, rpc.answered_ns or OPEN_NS)
        return begun > 0 and self.latest_end_ns[begun - 1] >= rpc.reached_ns


def _times_in_force(
    history: PartitionHistory, facts: Facts
) -> Mapping[frozenset[int], _TimesInForce]:
    """Return the times of each ISR, from the first moment of a version to the last of it."""
    spans: dict[frozenset[int], list[tuple[int, int]]] = {}
    for version, from_ns, until_ns in spans_in_force(history.versions, facts):
        spans.setdefault(frozenset(version.isr), []).append((from_ns, until_ns))
    found = {}
    for isr, several in spans.items():
        begins, ends = zip(*sorted(several), strict=True)
        found[isr] = _TimesInForce(begins, list(accumulate(ends, max)))
    return found


def _proof(history: PartitionHistory, rpc: Rpc) -> Proof:
    return Proof.of(
        "{target} granted the IsrChange of {key} to {isr}, passed on at {reached} (frame {frame}), "
        "by {answered} (frame {answer_frame}), and the partition had another ISR all the while",
        frames={"frame": rpc.frame, "answer_frame": rpc.answer_frame},
        times={"reached": rpc.reached_ns, "answered": rpc.answered_ns},
        sources=dict.fromkeys(("isr", "reached"), "frame") | {"answered": "answer_frame"},
        target=rpc.target,
        key=history.key,
        isr=list(rpc.of("isr") or ()),
    )
