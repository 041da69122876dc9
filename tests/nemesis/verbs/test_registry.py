"""What every verb owes to those who loop over them."""

from pathlib import Path
from random import Random

import pytest

from fencepost.clusters.port import NodeName
from fencepost.clusters.stage import Stage
from fencepost.nemesis.targets import NamedNodes, Scene
from fencepost.nemesis.verbs import registry
from fencepost.nemesis.verbs.episode import Opening
from fencepost.nemesis.verbs.page import verbs_page
from fencepost.nemesis.verbs.registry import EPISODES, KINDS, VERBS, verb_of
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.step import Breaking, OnNodes
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.wait import Wait
from fencepost.nemesis.wire.rules import Delay

B = tuple(map(NodeName, ("broker-1", "broker-2", "broker-3")))
STAGE = Stage(nodes=("controller-1", *B), keys=("t-0",), broker_ids=(1, 2, 3))  # type: ignore[arg-type]
ON_NODES = sorted(word for word, verb in VERBS.items() if verb.action is not None)
PAGE = Path(__file__).parents[3] / "docs/verbs.md"


@pytest.mark.parametrize("word", ON_NODES)
def test_what_heals_is_a_verb_and_what_breaks_has_one(word: str) -> None:
    verb = VERBS[word]
    assert verb.action is not None
    assert not (verb.healed_by and verb.action.heals)
    if verb.healed_by:
        healing = VERBS[verb.healed_by].action
        assert healing is not None
        assert healing.heals is not None
        assert word in KINDS


@pytest.mark.parametrize("word", ON_NODES)
def test_a_healing_verb_can_be_made_of_its_nodes_alone(word: str) -> None:
    """An interpreter heals what a play left broken: it has nothing else to say."""
    verb = VERBS[word]
    if verb.action is not None and verb.action.heals:
        step = verb.step(target=NamedNodes(nodes=B[:1]))
        assert verb_of(step) is verb


@pytest.mark.parametrize("kind", sorted(EPISODES))
def test_an_episode_breaks_something_first_and_ends_with_what_heals_it(kind: str) -> None:
    steps = EPISODES[kind].example()
    breaking = [step for step in steps if isinstance(step, Breaking) and registry.is_fault(step)]
    assert breaking
    last = verb_of([step for step in steps if not isinstance(step, Wait)][-1])
    mends_itself = last.fault and (last.action.mends_itself if last.action else not last.healed_by)
    heals = last.action is not None and last.action.heals is not None
    assert mends_itself or heals or last.word in ("heal", "release", "resume_client")
    if not mends_itself:
        assert not last.fault


def test_the_page_of_verbs_is_the_one_that_they_draw() -> None:
    assert PAGE.read_text(encoding="utf-8") == verbs_page(), "run `make docs`"


def test_a_step_has_no_field_that_belongs_to_another_verb() -> None:
    written = StepSource(word="kill", item={"kill": "broker-1"}, stage=STAGE)
    kill = VERBS["kill"].parse(written)
    assert isinstance(kill, OnNodes)
    assert {field for one in type(kill).__mro__ for field in getattr(one, "__slots__", ())} == {
        "at_s",
        "kind",
        "target",
    }


@pytest.mark.parametrize("seed", range(40))
def test_a_drawn_delay_is_bounded_and_concerns_what_brokers_dial(seed: int) -> None:
    begun = EPISODES["delay"].begin(draft(seed))
    assert begun is not None
    lay = begun.due[0][1]
    assert isinstance(lay, Lay)
    assert isinstance(lay.action, Delay)
    assert 0 < lay.action.min_ms <= lay.action.max_ms <= 200
    assert isinstance(lay.source.target, NamedNodes)
    assert set(lay.source.target.nodes) <= set(B)


def draft(seed: int) -> Opening:
    scene = Scene(
        nodes=(NodeName("controller-1"), *B), broker_ids={}, view=None, active_controller=None
    )
    return Opening(
        name="mix-1",
        now_s=0.0,
        scene=scene,
        draw=Random(seed),
        aim=Random(seed),
        duration_s=(1.0, 2.0),
        gap_s=(1.0, 2.0),
        target=lambda: NamedNodes(nodes=B[:1]),
        free=lambda nodes: nodes,
        roles=(),
        busy=(),
    )
