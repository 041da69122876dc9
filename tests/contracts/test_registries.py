"""Registries: what stands beside the others is found, and brings what loops over it ask for."""

import pkgutil
from pathlib import Path

import pytest
import yaml

from fencepost.checkers.grounds.tape_parties import ALWAYS_TAPED
from fencepost.clusters.port import NodeName
from fencepost.clusters.stage import Stage
from fencepost.nemesis import verbs
from fencepost.nemesis.play import parse_play, step_word
from fencepost.nemesis.verbs.registry import VERBS, module_of
from fencepost.nemesis.wire.apis import api_name
from fencepost.nemesis.wire.decoding.entities import TAPED
from fencepost.nemesis.wire.zookeeper.messages import KEYS as MESSAGES_OF_ZOOKEEPER
from fencepost.report.frames import DECIDING

STAGE = Stage(
    nodes=tuple(map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3"))),
    keys=("t-0",),
    broker_ids=(1, 2, 3),
)


def test_every_file_of_verbs_has_one_or_serves_those_that_have() -> None:
    names = {found.name for found in pkgutil.iter_modules(verbs.__path__)}
    with_verbs = {module_of(verb).__name__.rpartition(".")[2] for verb in VERBS.values()}
    code = {name: Path(verbs.__path__[0], f"{name}.py").read_text("utf-8") for name in names}
    assert "page" not in with_verbs
    for name in names - with_verbs - {"page"}:
        if "\nEPISODES = " in code[name]:
            continue
        serves = any(f"from {verbs.__name__}.{name} import" in one for one in code.values())
        assert serves, f"{name}: neither in VERBS nor imported by a verb"


@pytest.mark.parametrize("word", VERBS)
def test_a_verbs_example_is_a_play_that_ends_with_it(word: str) -> None:
    """`tests/harness/prepare/test_abilities.py` performs each on every kind of cluster."""
    steps = parse_play([yaml.safe_load(step) for step in VERBS[word].example], STAGE)
    assert step_word(steps[-1]) == word


def test_the_tape_has_every_frame_that_checkers_and_reports_look_for() -> None:
    taped = {api_name(key) for key in TAPED} | {*MESSAGES_OF_ZOOKEEPER}
    assert {*ALWAYS_TAPED, *DECIDING} <= taped
