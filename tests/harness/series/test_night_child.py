"""A run that ended as its night was killed is taken as it is: that run, and no other one."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from manifests import MANIFEST

from harness.series.night_child import judged_run
from harness.series.night_file import Cell
from history.manifest import RunState, write_manifest

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


def checked(results: Path, stamp: str, *, seed: int = 7, state: RunState = RunState.CHECKED) -> str:
    root = results / "storm" / stamp
    root.mkdir(parents=True)
    write_manifest(root / "manifest.json", replace(MANIFEST, seed=seed, state=state))
    check = {"check": "lost-write", "validity": "invalid", "reason": "17"}
    verdict = {"validity": "invalid", "checks": [check]}
    (root / "verdict.json").write_text(json.dumps(verdict))
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
