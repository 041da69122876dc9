"""The algebra: what is drawn comes in the order of the tree, and trees are rewritten as values."""

import random
from dataclasses import replace
from itertools import islice
from typing import Any

import pytest

from fencepost.clusters.port import NodeName
from fencepost.nemesis.schedules.draws import Among, AnyOf, Chance, EnoughNodes, Exactly
from fencepost.nemesis.schedules.printed import printed
from fencepost.nemesis.schedules.relays import RELAY
from fencepost.nemesis.schedules.schedule import (
    NOTHING,
    Act,
    Again,
    Each,
    Lasting,
    OneOf,
    Option,
    Pick,
    Schedule,
    WaitFor,
    When,
    maybe,
    one_of,
    rewritten,
    then,
    unfolded,
    wait,
    walk,
)
from fencepost.nemesis.schedules.scope import BROKERS, DOWN, ONE, Scope
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.verbs.kill import Kill
from fencepost.nemesis.verbs.pause import Pause
from fencepost.nemesis.verbs.step import OnNodes
from fencepost.nemesis.verbs.wait import Wait

NODES = tuple(map(NodeName, ("broker-1", "broker-2", "broker-3")))


def scope(seed: int = 1) -> Scope:
    return Scope(draw=random.Random(seed), parties={BROKERS: NODES})


def waits(schedule: Schedule, seed: int) -> list[float]:
    return [step.for_s for step in unfolded(schedule, scope(seed)) if isinstance(step, Wait)]


def test_options_come_by_their_weights_and_only_where_they_can() -> None:
    never = EnoughNodes(Among(("nobody",)))
    schedule = OneOf((Option(wait(1.0), 3), Option(wait(2.0)), Option(wait(3.0), 9, given=never)))
    drawn = [waits(schedule, seed)[0] for seed in range(400)]
    assert {*drawn} == {1.0, 2.0}
    assert 250 < drawn.count(1.0) < 350


def test_a_share_is_a_share_and_the_rest_is_otherwise() -> None:
    schedule = maybe(0.2, wait(1.0), otherwise=wait(2.0))
    drawn = [waits(schedule, seed)[0] for seed in range(400)]
    assert 50 < drawn.count(1.0) < 110
    assert drawn.count(1.0) + drawn.count(2.0) == 400


def test_no_node_is_picked_twice_while_it_is_down() -> None:
    whole = Among((BROKERS,), but_not=(DOWN,))
    schedule = Again(then(Pick(ONE, whole), Act(Kill, ONE)), Exactly(3))
    steps = unfolded(schedule, scope())
    struck = [step.target for step in steps if isinstance(step, OnNodes)]
    assert {*struck} == {NamedNodes(nodes=(node,)) for node in NODES}


def test_what_lasts_ends_with_the_first_wait_beyond_its_time() -> None:
    assert waits(Lasting(wait(0.4), Exactly(1.0)), 1) == [0.4, 0.4, 0.4]


def test_what_has_no_end_unfolds_as_far_as_it_is_asked() -> None:
    assert len([*islice(Again(wait(1.0)).unfold(scope()), 5)]) == 5


def test_each_is_done_to_every_node_in_order() -> None:
    steps = unfolded(Each(Among((BROKERS,)), Act(Pause, ONE)), scope())
    assert steps == tuple(Pause(target=NamedNodes(nodes=(node,))) for node in NODES)


def test_a_schedule_is_rewritten_into_another_that_unfolds() -> None:
    def certain(value: Any) -> Any:
        return replace(value, share=1.0) if isinstance(value, Chance) else value

    schedule = then(maybe(0.001, wait(1.0)), Again(maybe(0.001, wait(2.0)), Exactly(2)))
    assert waits(rewritten(schedule, certain), 1) == [1.0, 2.0, 2.0]
    assert rewritten(RELAY, lambda value: value) == RELAY
    assert [one.share for one in walk(rewritten(RELAY, certain)) if isinstance(one, Chance)] == [
        1.0
    ] * 4


@pytest.mark.parametrize(
    ("schedule", "lines"),
    [
        (
            maybe(0.3, Act(Kill, BROKERS), otherwise=Act(Pause, BROKERS)),
            ["30 %: kill brokers", "otherwise: pause brokers"],
        ),
        (When(Chance(0.25), NOTHING, otherwise=wait(1.0)), ["75 %: wait 1s"]),
        (
            Again(then(one_of((3, wait(1.0)), (1, wait(2.0))), WaitFor(AnyOf((0.1, 0.5))))),
            [
                "again and again:",
                "  one of:",
                "    75 %: wait 1s",
                "    25 %: wait 2s",
                "  wait 0.1s or 0.5s",
            ],
        ),
    ],
)
def test_a_schedule_is_printed_with_its_shares_and_bounds(
    schedule: Schedule, lines: list[str]
) -> None:
    assert printed(schedule).splitlines() == lines
