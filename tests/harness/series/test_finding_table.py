"""How steady findings are, over the record and over stored runs."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

from click.testing import CliRunner
from manifests import MANIFEST

from fencepost.checkers.verdict import RunFinding, Verdict, write_verdict
from fencepost.clusters.systems import system_of
from fencepost.harness.cli.reproduce import track_record
from fencepost.harness.series.finding_record import (
    FindingRecord,
    read_finding_records,
    write_finding_record,
)
from fencepost.harness.series.finding_table import (
    FindingRow,
    findings_page,
    of_plays,
    of_record,
    of_runs,
    shared,
)
from fencepost.harness.series.firing import (
    FiringPlay,
    ToldTrial,
    UnfiredPlay,
    firing_plays,
    unfired_plays,
)
from fencepost.harness.series.track_record import read_track_record
from fencepost.harness.trials.generations import GENERATIONS
from fencepost.history.manifest import write_manifest

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
    page = findings_page(rows, [], [])
    assert "| c | without one_vote | 1/1 | 0/1 | `c/gone + c/lost-write` (1) |" in page
    assert "Plays of different bugs tell `lost-write`: KAFKA-1, one_vote." in page


def test_a_play_that_needs_the_real_software_has_its_reason_and_what_is_on_record() -> None:
    unfired = [UnfiredPlay(play="s", reason="no disks"), UnfiredPlay(play="t", reason="no clocks")]
    other = replace(row(b=1), release="3.9.2")
    page = findings_page([], unfired, [row(a=19, b=1), other])
    assert "| s | no disks | `a` 19/21; `b` 2/21 |\n| t | no clocks | none |" in page


def test_a_record_replaces_that_of_the_same_play_and_condition_alone(tmp_path: Path) -> None:
    def record(made_by: str, *identities: str) -> FindingRecord:
        return FindingRecord(
            play="cut-off",
            made_by=made_by,
            command="fencepost track-record --findings --seeds 1 --play cut-off",
            started_at="2027-01-01T00:00:00+00:00",
            fencepost_version="0.1.0",
            machine={"cores": "2"},
            trials=(ToldTrial(seed=1, identities=identities),),
        )

    for one in (record("without a", "x"), record("without b", "y"), record("without a", "x", "z")):
        write_finding_record(one, tmp_path)
    assert read_finding_records(tmp_path) == {
        ("cut-off", "without a"): record("without a", "x", "z"),
        ("cut-off", "without b"): record("without b", "y"),
    }


def test_the_page_is_the_one_that_the_record_draws(tmp_path: Path) -> None:
    page = tmp_path / "identities.md"
    results = str(ROOT / "results")
    run = CliRunner().invoke(
        track_record, ["--findings", "--write", str(page), "--results", results]
    )
    assert run.exit_code == 0, run.output
    assert page.read_text() == (ROOT / "docs" / "identities.md").read_text()


def test_each_play_of_a_bug_is_carried_out_or_says_why_not() -> None:
    bugs = {path.stem for path in (ROOT / "scenarios" / "bugs").glob("*.yaml")}
    told = {one.play for one in firing_plays()} | {one.play for one in unfired_plays()}
    # These expect no release to have the bug any more, or to have it for certain.
    assert bugs - told == {"librdkafka-4953-java", "reformatted-controller-dynamic"}
    assert all(one.reason for one in unfired_plays())


def test_a_play_shows_its_bug_at_the_newest_version_that_has_it() -> None:
    made_by = {one.play: one.made_by for one in firing_plays() if not one.without_rules}
    # Below it, it is the bug of kip-903.
    assert made_by["epochless-join"] == "metadata.version 3"
    assert made_by["kip-903"] == "metadata.version 1"
    assert made_by["kip-903-reassignment"] == "metadata.version 1"  # no trial, but a run
    assert made_by["old-incarnation-joins"] == "as it stands"


def test_each_play_that_fires_in_virtual_time_is_carried_out_once() -> None:
    plays = list(firing_plays())
    named = [(one.play, one.made_by) for one in plays]
    assert len(set(named)) == len(named)
    assert ("kip-903", "metadata.version 1") in named
    assert ("old-records", "without commit_in_own_epoch") in named
    rules = {name for one in GENERATIONS.values() for name in one.plays}
    assert {one.bug for one in plays if one.without_rules} == rules
    assert all(system_of(one.scenario().cluster).in_virtual_time for one in plays)
