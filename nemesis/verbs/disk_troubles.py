"""A disk that is full, read-only, failed, stalled or slow under a node that goes on as it can.

Five verbs that differ in the trouble, and one that ends each of them.
"""

from dataclasses import dataclass
from typing import Any

from fencepost.clusters.abilities import TroublesDisks
from fencepost.clusters.port import Cluster, DiskTrouble, NodeName, NodeState
from fencepost.nemesis.verbs.episode import on_nodes, until_healed
from fencepost.nemesis.verbs.on_nodes import each, node_verb
from fencepost.nemesis.verbs.predicted_state import Now
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.verb import Healing, NodeAction, Verb
from fencepost.nemesis.words import duration_text

_STALL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class FillDisk(OnNodes):
    """Leave no space on the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LockDisk(OnNodes):
    """Let nothing be written to the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailDisk(OnNodes):
    """Have every access to the disk fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StallDisk(OnNodes):
    """Have every access to the disk wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlowDisk(OnNodes):
    """Have accesses to the disk wait again and again."""

    stall_s: float = _STALL_S
    """The duration of each stall."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MendDisk(OnNodes):
    """End the trouble of the disk, and start the node if it died of it."""


def _verb(
    word: str,
    step: type[OnNodes],
    trouble: DiskTrouble,
    *,
    state: str,
    tones: tuple[str, str],
    destructive: bool = False,
    **more: Any,
) -> Verb[Any]:
    def do(cluster: Cluster, node: NodeName, done: OnNodes) -> str:
        assert isinstance(cluster, TroublesDisks)
        stall_s = done.stall_s if isinstance(done, SlowDisk) else _STALL_S
        seen = cluster.trouble_disk(node, trouble, stall_s=stall_s)
        return f"{node}: its disk is {trouble}, {seen}"

    return node_verb(
        word,
        (f"{word}: broker-1",),
        step,
        NodeAction(
            do=each(do),
            abilities=(TroublesDisks,),
            prerequisite=Prerequisite.DISK_IMAGES,
        ),
        healed_by="mend_disk",
        after=Now.TROUBLED,
        episodes=(on_nodes(word, until_healed(step, healed=MendDisk), destructive=destructive),),
        state=state,
        tones=tones,
        **more,
    )


def _mend(cluster: Cluster, node: NodeName, _step: MendDisk) -> str:
    assert isinstance(cluster, TroublesDisks)
    found = cluster.state(node)
    cluster.mend_disk(node)
    return f"{node} had ended" if found is NodeState.DOWN else f"{node} went on"


_MEND_DISK = node_verb(
    "mend_disk",
    ("slow_disk: broker-1", "mend_disk: broker-1"),
    MendDisk,
    NodeAction(
        do=each(_mend),
        abilities=(TroublesDisks,),
        heals=Healing(
            seen="its disk is whole again, it runs, it takes part",
            of_running_nodes=False,
            again_if_it_dies=True,
        ),
    ),
    before=(Now.TROUBLED,),
    after=Now.UP,
)
VERBS = (
    _verb(
        "fill_disk",
        FillDisk,
        DiskTrouble.FULL,
        state="disk full",
        tones=("#b45309", "#e8a04c"),
    ),
    _verb(
        "lock_disk",
        LockDisk,
        DiskTrouble.READ_ONLY,
        state="disk read-only",
        tones=("#92400e", "#d08a4f"),
        destructive=True,
    ),
    _verb(
        "fail_disk",
        FailDisk,
        DiskTrouble.FAILED,
        state="disk failed",
        tones=("#7f1d1d", "#e07a7a"),
        destructive=True,
    ),
    _verb(
        "stall_disk",
        StallDisk,
        DiskTrouble.STALLED,
        state="disk stalled",
        tones=("#0e7490", "#56c1d6"),
    ),
    _verb(
        "slow_disk",
        SlowDisk,
        DiskTrouble.SLOW,
        state="disk slow",
        tones=("#0891b2", "#7dd3e8"),
        modifiers=("by",),
        own=lambda written: {"stall_s": written.duration_s("by")} if "by" in written.item else {},
        own_data=lambda step: {"by": duration_text(step.stall_s)},
    ),
    _MEND_DISK,
)
