"""A bad check is called by the transformation that it falls for; a good one by none."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from commands import Fencepost

import fencepost.harness.cli.metamorphic as command
import fencepost.harness.metamorphic.metamorphic as judging
from fencepost.checkers.catalogue import TABLE_CHECKS
from fencepost.checkers.check import check_run
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView, counted
from fencepost.checkers.proof import Proof
from fencepost.checkers.runner.tasks import InProcessTasks
from fencepost.checkers.verdict import Validity, Verdict, read_verdict
from fencepost.harness.metamorphic.metamorphic import Transformed, outcomes, verdict_before
from fencepost.harness.metamorphic.transformation import transformation_of
from fencepost.harness.metamorphic.transformations import TRANSFORMATIONS
from fencepost.harness.trials.plan import drawn_plan
from fencepost.harness.trials.store import store_trial
from fencepost.history.run_directory import RunDirectory

BAD = "two-leaders"
"""The check in the place of which a bad one is planted; it rests on no assumption of the tape."""


def told_twice(tables: Tables, seen: MetadataView) -> Judged:
    """Takes a row that stands on the tape twice for something that happened twice."""
    del seen
    rows = zip(*(tables["wire"][name].to_pylist() for name in ("frame", "item")), strict=True)
    twice = [one for one, count in Counter(rows).items() if count > 1]
    frames = [Proof.of("frame {frame} came twice", frames={"frame": frame}) for frame, _ in twice]
    yield "t", counted(BAD, "t", [*frames, None])


def dated(tables: Tables, seen: MetadataView) -> Judged:
    """Judges as many cases as the date allows."""
    del tables
    yield "t", counted(BAD, "t", [None] * (seen.facts.origin_utc_ns // 86_400_000_000_000))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    root = tmp_path_factory.mktemp("results") / "trials" / "run"
    return store_trial(drawn_plan(11), without_rules=(), root=root, name="s").run


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[..., Judged]], None]:
    def planted(kernel: Callable[..., Judged]) -> None:
        tables = tuple(
            replace(one, kernel=kernel) if one.entry.name == BAD else one for one in TABLE_CHECKS
        )
        assert tables != TABLE_CHECKS
        monkeypatch.setattr(judging, "check_run", partial(check_run, tables=tables))

    return planted


@pytest.fixture(scope="module")
def before(run: RunDirectory, tmp_path_factory: pytest.TempPathFactory) -> Verdict:
    verdict = verdict_before(run, root=tmp_path_factory.mktemp("before"))
    assert verdict.validity is Validity.VALID
    return verdict


def after(run: RunDirectory, before: Verdict, name: str, root: Path) -> Transformed:
    chosen = [transformation_of(name, TRANSFORMATIONS)]
    session = InProcessTasks()
    (found,) = outcomes(run, before, seed=1, root=root, session=session, chosen=chosen)
    return found


def test_a_good_check_holds_and_no_copy_is_kept(
    run: RunDirectory, before: Verdict, tmp_path: Path
) -> None:
    for name in ("frames-twice", "another-day", "tail-of-tape-lost"):
        found = after(run, before, name, tmp_path)
        assert (found.holds, found.kept, dict(found.accused)) == (True, None, {})
    assert found.validity is Validity.UNKNOWN
    assert any(one.startswith("whole-tape: ") for one in found.doubts)
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_accuses_after_a_transformation_is_called(
    run: RunDirectory, before: Verdict, plant: Callable[..., None], tmp_path: Path
) -> None:
    plant(told_twice)
    found = after(run, before, "frames-twice", tmp_path)
    assert (found.holds, found.validity, list(found.accused)) == (False, Validity.INVALID, [BAD])
    assert found.kept == tmp_path / "frames-twice"
    assert read_verdict(found.kept / "verdict.json").validity is Validity.INVALID


def test_a_check_whose_answer_depends_on_the_date_is_called(
    run: RunDirectory, plant: Callable[..., None], tmp_path: Path
) -> None:
    plant(dated)
    before = verdict_before(run, root=tmp_path)
    found = after(run, before, "another-day", tmp_path)
    assert (found.holds, found.accused, found.changed) == (False, {}, (BAD,))
    # A transformation after which a verdict need not be the same lets it be.
    assert after(run, before, "begun-earlier", tmp_path).changed == ()


def test_the_command_says_who_accuses_and_how_to_look(
    run: RunDirectory,
    plant: Callable[..., None],
    fencepost: Fencepost,
    tmp_path: Path,
) -> None:
    words = ("selftest", "--metamorphic", str(run.root), "--seed", "1")
    words += ("--transformation", "frames-twice")
    plant(told_twice)
    ended = fencepost(*words, results=tmp_path)
    assert ended.returncode == 1
    said = " ".join(ended.stdout.split())
    kept = tmp_path / "metamorphic" / "changed" / "trials-run" / "frames-twice"
    assert f"look: fencepost check {kept}" in said
    assert f"repeat: fencepost {' '.join(words)}" in said
    (told,) = json.loads(fencepost(*words, "--json", results=tmp_path).stdout)["runs"]
    assert (told["before"], told["holds"]) == ("valid", False)
    (one,) = told["transformations"]
    assert (one["transformation"], one["after"]) == ("frames-twice", "invalid")
    assert list(one["accused"]) == [BAD]


@pytest.mark.slow
def test_without_a_run_it_records_its_own(
    fencepost: Fencepost, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(command, "_TIME_LIMIT", "2s")
    monkeypatch.setattr(command, "_OWN_RUNS", command._OWN_RUNS[:2])
    words = ("selftest", "--metamorphic", "--seed", "1", "--transformation", "another-day")
    told = json.loads(fencepost(*words, "--json", results=tmp_path).stdout)
    assert [Path(one["run"]).parent.name for one in told["runs"]] == [
        "storm",
        "reference-zookeeper-storm",
    ]
    assert all(one["holds"] for one in told["runs"])
    assert sorted(path.name for path in (tmp_path / "metamorphic").iterdir()) == [
        "latest",
        "reference-zookeeper-storm",
        "storm",
    ]


@pytest.mark.spark
def test_on_spark_a_run_is_tried_and_one_that_is_invalid_is_refused(
    run: RunDirectory, fencepost: Fencepost, tmp_path: Path
) -> None:
    words = ("selftest", "--metamorphic", "--seed", "1", "--json")
    for name in ("nodes-renamed", "frames-lost", "cut-short"):
        words += ("--transformation", name)
    ended = fencepost(*words, str(run.root), results=tmp_path)
    assert ended.returncode == 0, ended.stderr
    (told,) = json.loads(ended.stdout)["runs"]
    tried = [(one["transformation"], one["after"]) for one in told["transformations"]]
    assert tried == [
        ("nodes-renamed", "valid"),
        ("frames-lost", "unknown"),
        ("cut-short", "unknown"),
    ]
    guilty = store_trial(
        drawn_plan(2), without_rules=("epoch_from_offset",), root=tmp_path / "s", name="s"
    ).run
    refused = fencepost(*words, str(guilty.root), results=tmp_path)
    assert refused.returncode == 254
    assert f"{guilty.root} is invalid: only a valid run" in refused.stderr
