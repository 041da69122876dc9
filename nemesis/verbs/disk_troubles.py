"""A disk that is full, read-only, failed, stalled or slow under a node that goes on as it can."""

from clusters.abilities import TroublesDisks
from clusters.port import Cluster, DiskTrouble, NodeName
from nemesis.steps import Act, Word
from nemesis.verbs.fault import Fault, one_by_one

__all__ = ["DISK_TROUBLES"]

_TROUBLES = {
    Word.FILL_DISK: DiskTrouble.FULL,
    Word.LOCK_DISK: DiskTrouble.READ_ONLY,
    Word.FAIL_DISK: DiskTrouble.FAILED,
    Word.STALL_DISK: DiskTrouble.STALLED,
    Word.SLOW_DISK: DiskTrouble.SLOW,
}


def _inject(cluster: Cluster, node: NodeName, act: Act) -> str:
    assert isinstance(cluster, TroublesDisks)
    trouble = _TROUBLES[act.word]
    seen = cluster.trouble_disk(node, trouble, stall_s=act.stall_s)
    return f"{node}: its disk is {trouble}, {seen}"


DISK_TROUBLES = tuple(
    Fault(
        name=word,
        healed_by=Word.MEND_DISK,
        abilities=(TroublesDisks,),
        inject=one_by_one(_inject),
    )
    for word in _TROUBLES
)
