"""How steady findings are, over the record and over stored runs."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from manifests import MANIFEST

from checkers.verdict import RunFinding, Verdict, write_verdict
from clusters.systems import system_of
from harness.series.finding_table import (
    FindingRow,
    findings_page,
    merged_rows,
    of_plays,
    of_record,
    of_runs,
    shared,
)
from harness.series.track_record import read_track_record
from harness.series.firing import FiringPlay, ToldTrial, firing_plays
from harness.trials.generations import GENERATIONS
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


def test_plays_of_one_bug_may_share_a_finding_and_those_of_others_may_not() -> None:
    trials = [ToldTrial(seed=1, identities=("a/lost-write",)), ToldTrial(seed=2, identities=())]
    first = FiringPlay(play="a", bug="KAFKA-1", level="1")
    again = replace(first, play="b")
    other = FiringPlay(play="c", bug="one_vote", without_rules=("one_vote",))
    rows = of_plays([(first, trials), (again, [ToldTrial(seed=1, identities=("b/lost-write",))])])
    assert [one.cells()[:3] for one in rows] == [
        ("a", "metadata.version 1", "1/1"),
        ("b", "metadata.version 1", "1/1"),
    ]
    assert shared(rows) == {}
    rows += of_plays([(other, [ToldTrial(seed=1, identities=("c/lost-write", "c/gone"))])])
    assert shared(rows) == {"lost-write": ("KAFKA-1", "one_vote")}
    assert [one.steady for one in rows] == [True, True, False]
    assert "| c | without one_vote | 1/1 | 0/1 | `c/gone + c/lost-write` (1) |" in findings_page(
        rows
    )
    assert "Plays of different bugs tell `lost-write`: KAFKA-1, one_vote." in findings_page(rows)


def test_a_page_keeps_the_lines_of_plays_that_were_not_carried_out_again() -> None:
    first, second, *_ = firing_plays()
    trials = [ToldTrial(seed=1, identities=("x/a", "x/b")), ToldTrial(seed=2, identities=())]
    rows = of_plays([(first, trials), (second, trials)])
    page = findings_page(rows)
    assert merged_rows(page, []) == rows
    (again,) = of_plays([(first, trials[1:])])
    assert merged_rows(page, [again]) == [again, rows[1]]


def test_each_play_that_fires_in_virtual_time_is_carried_out_once() -> None:
    plays = list(firing_plays())
    named = [(one.play, one.made_by) for one in plays]
    assert len(set(named)) == len(named)
    assert ("kip-903", "metadata.version 1") in named
    assert ("old-records", "without commit_in_own_epoch") in named
    rules = {name for one in GENERATIONS.values() for name in one.plays}
    assert {one.bug for one in plays if one.level is None} == rules
    assert all(system_of(one.scenario().cluster).in_virtual_time for one in plays)
