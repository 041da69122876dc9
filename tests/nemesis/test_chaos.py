"""Chaos breaks only what is whole and mends only what it broke, and comes to all kinds of steps."""

import random

from clusters.port import NodeName
from nemesis.chaos import Chaos
from nemesis.play import step_word
from nemesis.targets import NamedNodes, Scene
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.partition import Partition
from nemesis.verbs.step import OnNodes, Step

NODES = tuple(
    map(NodeName, ("controller-1", "controller-2", "controller-3", "broker-1", "broker-2"))
)
SCENE = Scene(
    nodes=NODES,
    broker_ids={NodeName("broker-1"): 1, NodeName("broker-2"): 2},
    view=None,
    active_controller=None,
)


def steps_of(seed: int, *, seconds: int = 60) -> list[Step]:
    chaos = Chaos(random.Random(seed), NODES)
    found: list[Step] = []
    for tick in range(seconds * 20):
        found += chaos.due(tick / 20, scene=SCENE)
    return found


def test_it_strikes_what_is_whole_and_mends_what_it_struck() -> None:
    for seed in range(30):
        down: dict[NodeName, str] = {}
        cut: set[str] = set()
        for step in steps_of(seed):
            match step:
                case OnNodes(target=NamedNodes(nodes=(node,))):
                    word = step_word(step)
                    if word in ("start", "resume"):
                        assert (down.pop(node) == "pause") == (word == "resume")
                    elif word == "wipe":
                        assert down[node] == "kill"
                    else:
                        assert node not in down
                        down[node] = word
                case Partition(name=name):
                    assert name not in cut
                    cut.add(name)
                case HealPartition(name=name):
                    cut.remove(name)
                case _:
                    raise AssertionError(step)


def test_all_kinds_of_steps_come() -> None:
    words: set[object] = set()
    for seed in range(10):
        words |= {step_word(s) if isinstance(s, OnNodes) else type(s) for s in steps_of(seed)}
    node_words = {
        "kill",
        "stop",
        "start",
        "pause",
        "resume",
        "wipe",
        "cut_power",
    }
    assert words >= node_words | {Partition, HealPartition}


def test_one_seed_gives_one_chaos_and_another_seed_another() -> None:
    assert steps_of(4) == steps_of(4)
    assert steps_of(4) != steps_of(5)
