"""Drawn late words are plays like any other: they read back, and what they break they mend."""

import random

import pytest

from clusters.port import NodeName
from clusters.stage import Stage
from nemesis.late_messages import drawn_late_word
from nemesis.play import parse_play, refuse_contradictions, step_data
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.lift import Lift
from nemesis.verbs.partition import Partition
from nemesis.verbs.pause import Resume
from nemesis.verbs.rule import Lay
from nemesis.verbs.start import Start
from nemesis.verbs.step import OnNodes, Play
from nemesis.verbs.wipe import Wipe

SERVERS = tuple(map(NodeName, ("zookeeper-1", "zookeeper-2", "zookeeper-3")))
BROKERS = tuple(map(NodeName, ("broker-1", "broker-2", "broker-3")))
STAGE = Stage(
    nodes=(*SERVERS, *BROKERS),
    keys=("t-0",),
    broker_ids=(1, 2, 3),
    replicas={"t-0": (1, 2, 3)},
    system="reference-zookeeper",
)


def drawn(seed: int, *, controller: NodeName = BROKERS[2]) -> Play:
    draw = random.Random(seed)
    return drawn_late_word(
        draw, key="t-0", replicas=(1, 2, 3), controller=controller, ensemble=SERVERS
    )


@pytest.mark.parametrize("controller", BROKERS)
def test_a_late_word_reads_back_as_it_was_drawn_and_can_be_performed(controller: NodeName) -> None:
    for seed in range(60):
        play = drawn(seed, controller=controller)
        refuse_contradictions(play, STAGE)
        assert parse_play([step_data(step) for step in play], STAGE) == play


@pytest.mark.parametrize("controller", BROKERS)
def test_what_it_holds_arrives_and_whom_it_cuts_off_or_strikes_comes_back(
    controller: NodeName,
) -> None:
    words = set()
    for seed in range(200):
        play = drawn(seed, controller=controller)
        laid = [step.name for step in play if isinstance(step, Lay)]
        assert sorted(laid) == sorted(step.name for step in play if isinstance(step, Lift))
        cut = [step.name for step in play if isinstance(step, Partition)]
        assert sorted(cut) == sorted(step.name for step in play if isinstance(step, HealPartition))
        struck = [step for step in play if isinstance(step, OnNodes)]
        ups = [one for one in struck if isinstance(one, Start | Resume)]
        all_but_wipes = [one for one in struck if not isinstance(one, Wipe)]
        assert len(all_but_wipes) == 2 * len(ups)
        words |= {step.match.api for step in play if isinstance(step, Lay)}
    assert words == {"MetadataHeartbeat", "IsrChange", "UpdateMetadata", "LeaderAndIsr", "Fetch"}


def test_one_seed_draws_one_and_seeds_differ() -> None:
    assert drawn(3) == drawn(3)
    assert len({str(drawn(seed)) for seed in range(50)}) > 40
