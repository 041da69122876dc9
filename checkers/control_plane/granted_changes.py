"""IsrChanges that a controller granted, and the ISR that was in force then.

An IsrChange (of the draft "Controller heartbeats, broker incarnation ids") names no version of the
partition, so it is no compare-and-set of the register that `nonlinearizable_isr` judges. But it is
a write: one that was answered without an error has been carried out, or asked for what was there.
So at some moment between when it was passed on and when its answer was there, the partition had the
ISR that it asked for.
"""

from collections.abc import Iterator

from checkers.metadata.isr_changes import IsrRequests
from checkers.metadata.partition_states import PartitionHistory
from checkers.metadata.rpcs import Rpc
from checkers.metadata.view import MetadataView
from checkers.proof import Proof
from checkers.rows import OPEN_NS

__all__ = ["granted_changes"]


def granted_changes(
    history: PartitionHistory, requests: IsrRequests, seen: MetadataView, *, until_ns: int
) -> Iterator[Proof | None]:
    """Yield, of each change that was granted before `until_ns`, the proof that it was not made."""
    for rpc in requests:
        if rpc.ok and rpc.reached_ns is not None and (rpc.answered_ns or OPEN_NS) < until_ns:
            yield None if _was_in_force(history, rpc, seen) else _proof(history, rpc)


def _was_in_force(history: PartitionHistory, rpc: Rpc, seen: MetadataView) -> bool:
    """Return whether the partition may have had that ISR while the request was under way."""
    asked, facts = set(rpc.of("isr") or ()), seen.facts
    assert rpc.reached_ns is not None
    for place, version in enumerate(history.versions):
        following = history.versions[place + 1 : place + 2]
        ends_ns = facts.latest_ns(following[0].timestamp_ms) if following else OPEN_NS
        begun = facts.earliest_ns(version.timestamp_ms) <= (rpc.answered_ns or OPEN_NS)
        if set(version.isr) == asked and begun and ends_ns >= rpc.reached_ns:
            return True
    return False


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
