"""A run that ended as its night was killed is taken as it is: that run, and no other one."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from manifests import MANIFEST

from fencepost.checkers.verdict import CheckResult, RunFinding, Validity, Verdict, write_verdict
from fencepost.harness.series.night_child import judged_run
from fencepost.harness.series.night_file import Cell
from fencepost.history.manifest import RunState, read_manifest, write_manifest

SINCE = datetime(2026, 1, 1, 20, tzinfo=UTC)
CELL = Cell(
    entry=0,
    scenario="storm",
    issue=None,
    system="kafka",
    cluster=MANIFEST.cluster,
    release="4.3.1",
    host="local",
    variant="",
    arguments=("storm",),
    bound_s=60.0,
)


LOST = RunFinding(
    identity="storm/lost-write",
    check="lost-write",
    title="",
    scenario="storm",
    count=1,
    culprit=(),
)


def checked(results: Path, stamp: str, *, seed: int = 7, state: RunState = RunState.CHECKED) -> str:
    root = results / "storm" / stamp
    root.mkdir(parents=True)
    write_manifest(root / "manifest.json", replace(MANIFEST, seed=seed, state=state))
    check = CheckResult(check="lost-write", validity=Validity.INVALID, reason="17")
    write_verdict(root / "verdict.json", replace(Verdict.of([check]), findings=(LOST,)))
    return f"storm/{stamp}"


def taken(results: Path, *counted: str) -> str | None:
    found = judged_run(results, CELL, 7, since=SINCE, counted=counted)
    return None if found is None else str(Path(found["run"]).relative_to(results))


def test_the_run_that_the_night_does_not_have_yet_is_taken(tmp_path: Path) -> None:
    first = checked(tmp_path, "20260101T200100Z")
    last = checked(tmp_path, "20260101T200200Z")
    assert taken(tmp_path, first) == last


def test_one_of_another_release_that_shares_its_seed_is_not(tmp_path: Path) -> None:
    first = checked(tmp_path, "20260101T200100Z")
    assert taken(tmp_path, first) is None


def test_one_that_was_not_judged_or_is_older_or_has_another_seed_is_not(tmp_path: Path) -> None:
    checked(tmp_path, "20260101T195900Z")
    checked(tmp_path, "20260101T200100Z", seed=8)
    checked(tmp_path, "20260101T200200Z", state=RunState.RECORDED)
    assert taken(tmp_path) is None


def test_it_tells_which_of_its_findings_its_scenario_expects(tmp_path: Path) -> None:
    path = tmp_path / checked(tmp_path, "20260101T200100Z") / "manifest.json"
    for expected, those in (((), ()), (("lost-write",), ("storm/lost-write",))):
        write_manifest(path, replace(read_manifest(path), expected=expected))
        told = judged_run(tmp_path, CELL, 7, since=SINCE, counted=())
        assert told is not None
        assert (told["validity"], told["reason"]) == ("invalid", "lost-write: 17")
        assert (told["findings"], told["expected"]) == (["storm/lost-write"], those)


def test_a_torn_verdict_is_none(tmp_path: Path) -> None:
    path = tmp_path / checked(tmp_path, "20260101T200100Z") / "verdict.json"
    path.write_bytes(path.read_bytes()[:-20])
    assert taken(tmp_path) is None
