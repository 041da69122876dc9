"""Series of runs: what counts as a hit, what a series comes to, and what is kept of it."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from series_doubles import BOTH, SilentProgress, runner, scenario_for, subject, ticking, verdict

from fencepost.checkers.anomaly import Anomaly
from fencepost.checkers.proof import Proof
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.harness.scenario.expectation import parse_expectations, tried_releases
from fencepost.harness.series.rate import Rate
from fencepost.harness.series.reproduce import (
    Subject,
    first_proof_seconds,
    planned,
    reproduce,
    result_of,
)
from fencepost.harness.series.reproduction import (
    Expected,
    Reproduction,
    RunResult,
    SeriesStanding,
    SeriesState,
)
from fencepost.harness.series.reproduction_file import (
    new_reproduction_path,
    read_reproduction,
    write_reproduction,
)
from fencepost.history.cluster_schema import WIRE
from fencepost.history.failure import HarnessError, SpecError, UsageError
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import OPERATIONS, RECORDS
from fencepost.history.writer import write_tables

HIT = verdict(*BOTH)
SOUND = verdict()
OPEN = verdict(unknown=["lost-write"])


def series_of(
    tmp_path: Path, subjects: list[Subject], *answers: Verdict | BaseException
) -> Reproduction:
    return reproduce(
        planned(subjects, command="fencepost reproduce trial"),
        subjects,
        path=tmp_path / "series.json",
        progress=SilentProgress(),
        run=runner(*answers),
        clock=ticking(),
    )


@pytest.mark.parametrize(
    ("hits", "runs", "low", "high"),
    [
        # By hand: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n), z = 1.959964.
        (0, 20, 0.0, 0.16113),
        (20, 20, 0.83887, 1.0),
        (0, 5, 0.0, 0.43448),
        (13, 20, 0.43286, 0.81881),
        (1, 1, 0.20655, 1.0),
    ],
)
def test_the_interval_is_wilsons(hits: int, runs: int, low: float, high: float) -> None:
    assert Rate(hit_count=hits, run_count=runs).interval() == pytest.approx((low, high), abs=1e-5)


def test_of_no_run_at_all_any_rate_is_possible() -> None:
    assert Rate(hit_count=0, run_count=0).interval() == (0.0, 1.0)


@given(runs=st.integers(1, 300), share=st.floats(0, 1))
def test_the_interval_holds_what_was_seen_and_narrows_with_more_runs(
    runs: int, share: float
) -> None:
    hits = round(share * runs)
    low, high = Rate(hit_count=hits, run_count=runs).interval()
    assert 0 <= low <= hits / runs <= high <= 1
    lower, higher = Rate(hit_count=4 * hits, run_count=4 * runs).interval()
    assert higher - lower < high - low


@pytest.mark.parametrize(
    ("found", "sought", "result"),
    [
        (HIT, [BOTH], RunResult.HIT),
        (verdict("lost-write"), [BOTH], RunResult.MISS),
        (verdict("lost-write"), [BOTH, ["lost-write"]], RunResult.HIT),
        (verdict("duplicate"), [BOTH], RunResult.MISS),
        (SOUND, [BOTH], RunResult.MISS),
        (OPEN, [BOTH], RunResult.UNKNOWN),
        (verdict(unknown=["duplicate"]), [BOTH], RunResult.UNKNOWN),
        (verdict("lost-write", unknown=["unseen"]), [BOTH], RunResult.UNKNOWN),
        (verdict("lost-write", unknown=["duplicate"]), [BOTH], RunResult.MISS),
        (verdict("duplicate"), [["a-check-that-was-not-made"]], RunResult.UNKNOWN),
        (verdict("duplicate"), [], RunResult.HIT),
        (SOUND, [], RunResult.MISS),
    ],
)
def test_a_hit_has_every_anomaly_and_an_open_question_is_no_miss(
    found: Verdict, sought: list[list[str]], result: RunResult
) -> None:
    assert result_of(found, sought) is result


@pytest.mark.parametrize(
    ("release", "answers", "standing"),
    [
        ("3.4.1", [HIT, HIT, SOUND], SeriesStanding.AS_EXPECTED),
        ("3.4.1", [HIT, OPEN, HarnessError("no port")], SeriesStanding.AS_EXPECTED),
        ("3.4.1", [SOUND, SOUND, verdict("duplicate")], SeriesStanding.NOT_AS_EXPECTED),
        ("3.4.1", [SOUND, SOUND, OPEN], SeriesStanding.INCONCLUSIVE),
        ("4.3.1", [SOUND, SOUND, SOUND], SeriesStanding.AS_EXPECTED),
        ("4.3.1", [SOUND, OPEN, HIT], SeriesStanding.NOT_AS_EXPECTED),
        ("4.3.1", [SOUND, SOUND, verdict("duplicate")], SeriesStanding.NOT_AS_EXPECTED),
        ("4.3.1", [SOUND, SOUND, OPEN], SeriesStanding.INCONCLUSIVE),
        ("4.3.1", [SOUND, SOUND, HarnessError("no port")], SeriesStanding.INCONCLUSIVE),
    ],
)
def test_one_hit_shows_a_bug_and_every_run_has_to_be_sound_to_show_none(
    tmp_path: Path, release: str, answers: list[Verdict | BaseException], standing: SeriesStanding
) -> None:
    done = series_of(tmp_path, [subject(tmp_path, release, runs=3)], *answers)
    assert done.series[0].standing is standing
    codes = {
        SeriesStanding.AS_EXPECTED: 0,
        SeriesStanding.NOT_AS_EXPECTED: 1,
        SeriesStanding.INCONCLUSIVE: 2,
    }
    assert done.exit_code == codes[standing]


def test_the_worst_release_decides_the_exit_code(tmp_path: Path) -> None:
    subjects = [subject(tmp_path, release, runs=1) for release in ("3.4.1", "3.5.2", "4.3.1")]
    assert series_of(tmp_path, subjects, HIT, OPEN, SOUND).exit_code == 2
    assert series_of(tmp_path, subjects, HIT, OPEN, HIT).exit_code == 1
    assert series_of(tmp_path, subjects, HIT, SOUND, SOUND).exit_code == 0


def test_hits_on_a_fixed_release_are_counted_against_the_bug(tmp_path: Path) -> None:
    done = series_of(
        tmp_path, [subject(tmp_path, "4.3.1", runs=3)], HIT, verdict("duplicate"), SOUND
    )
    (series,) = done.series
    assert series.expected is Expected.HOLDS
    assert series.sought == (BOTH,)
    assert (series.rate.hit_count, series.rate.run_count) == (1, 3)
    assert series.found == {"duplicate": 1, "lost-write": 1, "unseen": 1}


def test_with_a_metadata_version_of_the_users_the_scenario_says_nothing(tmp_path: Path) -> None:
    chosen = subject(tmp_path, "4.3.1", runs=1, metadata_version="3.3")
    done = series_of(tmp_path, [chosen], HIT)
    assert done.series[0].standing is SeriesStanding.UNSTATED
    assert done.exit_code == 0
    assert done.sentence() == "trial: 1/1 on 4.3.1 at metadata.version 3.3"


def test_the_sentence_to_quote(tmp_path: Path) -> None:
    subjects = [subject(tmp_path, release, runs=20) for release in ("3.4.1", "4.3.1")]
    done = series_of(tmp_path, subjects, *[HIT] * 20, *[SOUND] * 20)
    assert done.sentence() == (
        "trial: 20/20 on 3.4.1, 0/20 on 4.3.1 (at most 16 % at 95 % confidence)"
    )


def test_runs_that_could_not_tell_are_left_out_of_the_rate_and_told(tmp_path: Path) -> None:
    done = series_of(tmp_path, [subject(tmp_path, "3.4.1", runs=4)], HIT, OPEN, SOUND, OPEN)
    assert done.sentence() == ("trial: 1/2 on 3.4.1 (9 to 91 % at 95 % confidence), 2 inconclusive")
    none = series_of(tmp_path, [subject(tmp_path, "3.4.1", runs=1)], OPEN)
    assert none.sentence() == "trial: no conclusive run on 3.4.1"
    assert none.series[0].runs[0].reason == "lost-write: it ran out of its budget"


def test_a_failed_run_does_not_end_the_series(tmp_path: Path) -> None:
    failure = HarnessError("broker-1 did not start (see …)")
    done = series_of(tmp_path, [subject(tmp_path, "3.4.1", runs=3)], HIT, failure, HIT)
    assert done.state is SeriesState.COMPLETE
    results = [run.result for run in done.series[0].runs]
    assert results == [RunResult.HIT, RunResult.FAILED, RunResult.HIT]
    assert done.series[0].runs[1].reason == "broker-1 did not start (see …)"


def test_times_are_of_the_hits(tmp_path: Path) -> None:
    done = series_of(tmp_path, [subject(tmp_path, "3.4.1", runs=3)], HIT, HIT, SOUND)
    assert [run.seconds for run in done.series[0].runs] == [10.0] * 3
    assert done.series[0].median_seconds == 10.0
    slow = replace(done.series[0].runs[2], seconds=1000.0)
    series = replace(done.series[0], runs=(*done.series[0].runs[:2], slow))
    assert series.median_seconds == 10.0, "a miss is no hit"


def test_every_release_gets_the_same_seeds(tmp_path: Path) -> None:
    subjects = [subject(tmp_path, release, runs=2) for release in ("3.4.1", "4.3.1")]
    done = series_of(tmp_path, subjects, HIT, HIT, SOUND, SOUND)
    assert [[run.seed for run in series.runs] for series in done.series] == [[7, 8], [7, 8]]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt("SIGINT"), UsageError("another run")])
def test_a_series_that_is_cut_short_keeps_what_was_done(
    tmp_path: Path, interrupt: BaseException
) -> None:
    subjects = [subject(tmp_path, release, runs=2) for release in ("3.4.1", "4.3.1")]
    try:
        series_of(tmp_path, subjects, HIT, HIT, SOUND, interrupt)
    except UsageError as error:
        assert error is interrupt  # noqa: PT017  # the other kind is not raised
    kept = read_reproduction(tmp_path / "series.json")
    assert kept.state is SeriesState.INTERRUPTED
    assert [len(series.runs) for series in kept.series] == [2, 1]
    assert kept.sentence().startswith("trial: 2/2 on 3.4.1, 0/1 on 4.3.1")


def test_what_was_done_is_on_disk_after_every_run(tmp_path: Path) -> None:
    class Killed(BaseException):
        pass

    subjects = [subject(tmp_path, "3.4.1", runs=2)]
    with pytest.raises(Killed):
        series_of(tmp_path, subjects, HIT, Killed())
    kept = read_reproduction(tmp_path / "series.json")
    assert kept.state is SeriesState.RUNNING
    assert [run.result for run in kept.series[0].runs] == [RunResult.HIT]


def test_a_series_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    done = series_of(
        tmp_path, [subject(tmp_path, "3.4.1", runs=3)], HIT, OPEN, HarnessError("no port")
    )
    path = tmp_path / "again.json"
    write_reproduction(path, done)
    assert read_reproduction(path) == done
    stored = json.loads(path.read_text())
    assert stored["machine"]["cores"] == "2"
    assert stored["series"][0]["versions"]["java"] == "17.0.13"
    assert Path(stored["series"][0]["runs"][0]["run"]).is_dir()


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not the file of a reproduction: the whole: Invalid JSON"),
        ("{}", "is not the file of a reproduction: scenario: "),
        (None, "No such file"),
    ],
)
def test_what_is_no_series_is_refused_with_its_path(
    tmp_path: Path, content: str | None, says: str
) -> None:
    path = tmp_path / "series.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(HarnessError, match=says) as refused:
        read_reproduction(path)
    assert str(path) in str(refused.value)


@pytest.mark.parametrize("change", [{"format_version": 2}, {"mood": "good"}])
def test_a_series_of_another_format_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    path = tmp_path / "series.json"
    plan = planned([subject(tmp_path, "3.4.1", runs=1)], command="c")
    write_reproduction(path, plan)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(HarnessError, match=r"format 2|mood"):
        read_reproduction(path)


def test_series_of_one_second_get_files_of_their_own(tmp_path: Path) -> None:
    at = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)
    first = new_reproduction_path(tmp_path, "trial", at)
    first.write_text("{}")
    assert first == tmp_path / "trial/reproductions/20260301T080000Z.json"
    assert new_reproduction_path(tmp_path, "trial", at).name == "20260301T080000Z-01.json"


def test_progress_says_how_it_stands_after_each_run(tmp_path: Path) -> None:
    progress = SilentProgress()
    subjects = [subject(tmp_path, "3.4.1", runs=2)]
    reproduce(
        planned(subjects, command="c"),
        subjects,
        path=tmp_path / "series.json",
        progress=progress,
        run=runner(HIT, HarnessError("no port")),
        clock=ticking(),
    )
    assert progress.lines == [
        "3.4.1: run 1 of 2, seed 7 (repeat: fencepost run trial --seed 7)",
        "3.4.1: hit after 10.0 s, 1/1 so far",
        "3.4.1: run 2 of 2, seed 8 (repeat: fencepost run trial --seed 8)",
        "3.4.1: FAILED after 10.0 s, 1/1 so far: no port",
    ]


def test_a_scenario_names_the_releases_that_its_record_rests_on(tmp_path: Path) -> None:
    entries = scenario_for(tmp_path, "4.3.1").expect
    assert tried_releases(entries) == ("3.4.1", "3.5.2", "4.3.1")


@pytest.mark.parametrize(
    ("tried", "says"),
    [
        (["3.5.2"], "3.5.2 is not in the range of releases of this entry"),
        ([3.4], "3.4 is a number; quote it: '3.4'"),
        ("3.4.1", "expected a list of releases"),
    ],
)
def test_a_release_stands_with_the_entry_that_decides_about_it(tried: object, says: str) -> None:
    with pytest.raises(SpecError, match=says):
        parse_expectations(
            [{"kafka": "<3.5", "invalid": ["lost-write"], "tried": tried}, {"valid": True}]
        )


ENDS_S: tuple[float | None, ...] = (1.0, 9.0, 2.0, 4.0, None)


def stored_run(root: Path) -> RunDirectory:
    run = RunDirectory(root / "run")
    rows = [
        {
            "index": index,
            "process": 0,
            "f": "send",
            "key": "t-0",
            "call_ns": index,
            "return_ns": None if end is None else round(end * 1e9),
            "outcome": "ok" if end is not None else "info",
            "error": None,
            "record_count": 1,
        }
        for index, end in enumerate(ENDS_S)
    ]
    operations = pa.Table.from_pylist(rows, schema=OPERATIONS)
    wire = pa.Table.from_pylist(
        [frame(7, at=3.0, until=5.0), frame(8, at=6.0, until=None)], schema=WIRE
    )
    write_tables(run, operations=operations, records=RECORDS.empty_table(), cluster={"wire": wire})
    return run


def frame(number: int, *, at: float, until: float | None) -> dict[str, object]:
    return {
        "frame": number,
        "item": 0,
        "connection": 0,
        "source": "broker-1",
        "target": "controller-1",
        "direction": "request",
        "time_ns": round(at * 1e9),
        "forwarded_ns": None if until is None else round(until * 1e9),
        "action": "forwarded",
        "api": "AlterPartition",
        "api_key": 56,
        "api_version": 3,
        "correlation_id": number,
        "size_bytes": 9,
    }


def verdict_on(
    *proofs: tuple[int, ...], allowed: bool = False, frames: tuple[int, ...] = ()
) -> Verdict:
    examples = tuple(
        Anomaly(
            check="lost-write",
            key="t-0",
            allowed=allowed,
            proof=Proof.as_told("", operations=operations, frames=frames),
        )
        for operations in proofs
    )
    return Verdict.of(
        [CheckResult(check="lost-write", validity=Validity.INVALID, examples=examples)]
    )


def test_a_proof_is_complete_when_its_last_operation_had_ended(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    found = verdict_on((0, 1), (2, 3))
    assert first_proof_seconds(run, found, {"lost-write"}) == 4.0


def test_an_operation_that_never_ended_completes_no_proof(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    assert first_proof_seconds(run, verdict_on((0, 4)), {"lost-write"}) is None
    assert first_proof_seconds(run, verdict_on((0, 4), (0, 1)), {"lost-write"}) == 9.0


def test_without_a_proof_of_what_is_sought_there_is_no_such_time(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    assert first_proof_seconds(run, verdict_on((0, 1)), {"unseen"}) is None
    assert first_proof_seconds(run, verdict_on(()), {"lost-write"}) is None
    assert first_proof_seconds(run, verdict_on((0, 1), allowed=True), {"lost-write"}) is None


def test_a_proof_by_frames_is_complete_when_the_last_of_them_had_passed(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    assert first_proof_seconds(run, verdict_on((), frames=(7,)), {"lost-write"}) == 5.0
    assert first_proof_seconds(run, verdict_on((0,), frames=(7, 8)), {"lost-write"}) == 6.0
    assert first_proof_seconds(run, verdict_on((0,), frames=(99,)), {"lost-write"}) is None
