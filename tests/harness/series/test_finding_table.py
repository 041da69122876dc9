"""How steady findings are, over the record and over stored runs."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from manifests import MANIFEST

from checkers.verdict import RunFinding, Verdict, write_verdict
from harness.series.finding_table import FindingRow, of_record, of_runs
from harness.series.track_record import read_track_record
from history.manifest import write_manifest

FOUND = RunFinding(
    identity="old-records/metadata-divergence/applied-record-gone",
    check="metadata-divergence",
    title="Nodes hold different metadata",
    scenario="old-records",
    count=3,
    culprit=("applied-record-gone",),
    consequences=(),
    key="metadata",
)
ROOT = Path(__file__).parents[3]


def row(**runs: int) -> FindingRow:
    return FindingRow(
        scenario="s",
        release="4.3.1",
        runs=Counter({tuple(k.split("_")): n for k, n in runs.items()}),
    )


def test_every_run_on_record_tells_one_cause() -> None:
    rows = of_record(read_track_record(ROOT / "results" / "track-record"))
    assert sum(one.run_count for one in rows) > 600
    assert [one.cells() for one in rows if not one.steady] == []


def test_no_two_scenarios_share_an_identity() -> None:
    rows = of_record(read_track_record(ROOT / "results" / "track-record"))
    told = {(one.scenario, name) for one in rows for names in one.runs for name in names}
    assert len({name for _, name in told}) == len(told)


def test_one_run_in_twenty_may_differ_and_no_more() -> None:
    assert row(a=19, b=1).steady
    assert not row(a=18, b=2).steady
    # A run with two findings has not one cause.
    assert not row(a=18, a_b=2).steady


def test_a_stored_run_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    torn = tmp_path / "storm" / "20270101T220000Z" / "verdict.json"
    torn.parent.mkdir(parents=True)
    torn.write_text("{")
    rows, troubles = of_runs(tmp_path)
    assert rows == []
    assert str(torn) in troubles[0]


def test_trials_are_told_by_the_rule_that_was_off_and_none_twice(tmp_path: Path) -> None:
    root = tmp_path / "trials" / "old-records-seed-1"
    root.mkdir(parents=True)
    manifest = replace(
        MANIFEST,
        scenario="old-records",
        cluster="simulated",
        versions={},
        command="fencepost run play.yaml --cluster simulated --without-rule commit_in_own_epoch",
    )
    write_manifest(root / "manifest.json", manifest)
    write_verdict(root / "verdict.json", replace(Verdict.of([]), findings=(FOUND,)))
    (root.parent / "latest").symlink_to(root.name)
    ((row,), troubles) = of_runs(tmp_path)
    assert not troubles
    assert row.release == f"simulated {manifest.release} without commit_in_own_epoch"
    assert row.runs == {(FOUND.identity,): 1}
