"""What is planted into a valid run is called, and a check that is blind to it is found out."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from commands import Fencepost

import fencepost.harness.metamorphic.metamorphic as judging
from fencepost.checkers.catalogue import CATALOGUE, TABLE_CHECKS
from fencepost.checkers.check import check_run
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView, counted
from fencepost.checkers.runner.tasks import InProcessTasks
from fencepost.checkers.verdict import Validity, Verdict
from fencepost.harness.metamorphic.metamorphic import Transformed, outcomes, verdict_before
from fencepost.harness.metamorphic.planted import PLANTED
from fencepost.harness.metamorphic.transformation import Transformation, transformation_of
from fencepost.harness.trials.plan import drawn_plan
from fencepost.harness.trials.store import store_trial
from fencepost.history.run_directory import RunDirectory

BLIND = "nonlinearizable-isr"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    root = tmp_path_factory.mktemp("results") / "trials" / "run"
    return store_trial(drawn_plan(11), without_rules=(), root=root, name="s").run


@pytest.fixture(scope="module")
def before(run: RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    return verdict_before(run, root=tmp_path_factory.mktemp("before"))


def planted(
    run: RunDirectory, before: Verdict, root: Path, *chosen: Transformation
) -> Iterator[Transformed]:
    session = InProcessTasks()
    return outcomes(run, before, seed=1, root=root, session=session, chosen=chosen)


def test_every_check_that_is_to_call_a_plant_exists() -> None:
    known = {entry.name for entry in CATALOGUE}
    assert {name for one in PLANTED for name in one.called} <= known


@pytest.mark.slow
def test_what_is_planted_into_a_trial_is_called(
    run: RunDirectory, before: Verdict, tmp_path: Path
) -> None:
    found = list(planted(run, before, tmp_path, *PLANTED))
    assert {one.transformation.name: dict(one.accused) for one in found if not one.holds} == {}
    tried = {one.transformation.name for one in found if one.validity is not None}
    assert len(tried) > len(PLANTED) // 2
    assert list(tmp_path.iterdir()) == []


def blind(tables: Tables, seen: MetadataView) -> Judged:
    """Finds nothing, whatever there is."""
    del tables, seen
    yield "t", counted(BLIND, "t", [None])


def test_a_check_that_is_blind_to_it_is_found_out(
    run: RunDirectory, before: Verdict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant = transformation_of("isr-never-was", PLANTED)
    (called,) = planted(run, before, tmp_path, plant)
    assert (called.holds, called.validity) == (True, Validity.INVALID)
    tables = tuple(
        replace(one, kernel=blind) if one.entry.name == BLIND else one for one in TABLE_CHECKS
    )
    monkeypatch.setattr(judging, "check_run", partial(check_run, tables=tables))
    (missed,) = planted(run, before, tmp_path, plant)
    assert not missed.holds
    assert missed.kept is not None


def test_the_two_ways_to_try_runs_are_not_taken_at_once(
    fencepost: Fencepost, tmp_path: Path
) -> None:
    ended = fencepost("selftest", "--planted", "--metamorphic", results=tmp_path)
    assert ended.returncode == 254
    assert "choose one" in ended.stderr
