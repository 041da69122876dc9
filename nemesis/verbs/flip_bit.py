"""A flipped bit: in the log, an index or the metadata of a node that is down.

A node that cannot detect the flip stays corrupt until the data is read. Kafka looks at checksums
only where it recovers a log after an unclean end, and where a consumer or a follower reads.
"""

from dataclasses import dataclass, replace
from random import Random
from typing import Any

from fencepost.clusters.abilities import Starts
from fencepost.clusters.kafka_port import BitFlips, FlippedPart
from fencepost.clusters.port import Cluster, NodeName, NodeState
from fencepost.history.failure import SpecError
from fencepost.nemesis.verbs.episode import on_nodes, until_healed
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.on_nodes import each, node_verb, require_state
from fencepost.nemesis.verbs.predicted_state import Now
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import NodeAction
from fencepost.nemesis.words import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipBit(OnNodes):
    """Flip a bit on the disk of each node."""

    part: FlippedPart = FlippedPart.SEGMENT
    seed: int | None = None
    """The seed that draws the bit; None until it is performed."""


def _do(cluster: Cluster, node: NodeName, step: FlipBit) -> str:
    assert isinstance(cluster, BitFlips)
    assert step.seed is not None, "drawn when it is performed"
    require_state(cluster, node, NodeState.DOWN)
    return f"{node}: {cluster.flip_bit(node, step.part, seed=step.seed)}"


def _own(written: StepSource) -> dict[str, Any]:
    part = str(written.item.get("in", FlippedPart.SEGMENT))
    if part not in list(FlippedPart):
        raise SpecError(("in",), f"unknown part {part!r}; {did_you_mean(part, FlippedPart)}")
    return {"part": FlippedPart(part), "seed": written.whole_number("seed")}


def _own_data(step: FlipBit) -> dict[str, object]:
    part: dict[str, object] = {"in": str(step.part)}
    return part if step.seed is None else part | {"seed": step.seed}


def _drawn(step: FlipBit, draw: Random) -> FlipBit:
    return step if step.seed is not None else replace(step, seed=draw.getrandbits(32))


_FLIP_BIT = node_verb(
    "flip_bit",
    ("kill: broker-1", "flip_bit: broker-1"),
    FlipBit,
    NodeAction(
        do=each(_do),
        abilities=(BitFlips, Starts),
        on_this_machine=True,
        needs_down=True,
        draws=_drawn,
    ),
    healed_by="start",
    modifiers=("in", "seed"),
    own=_own,
    own_data=_own_data,
    before=(Now.DOWN,),
    episodes=(on_nodes("flip_bit", until_healed(Kill, FlipBit, healed=Start), destructive=True),),
    tones=("#6d28d9", "#a98bf5"),
)
VERBS = (_FLIP_BIT,)
