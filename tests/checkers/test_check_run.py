"""Stored runs through Spark, from the sealed files to `verdict.json`."""

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from proving import assert_proof

from fencepost.checkers.anomaly import ANOMALIES, Found, anomalies_of
from fencepost.checkers.catalogue import KEY_CHECKS, asked
from fencepost.checkers.check import check_run
from fencepost.checkers.data_plane.key_assumptions import KEY_ASSUMPTIONS
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.runner.tasks import TaskSession, run_tasks
from fencepost.checkers.verdict import CheckResult, Validity, Verdict, read_verdict
from fencepost.generators.draft import LIES, HistoryRecipe
from fencepost.generators.kafka import write_synthetic_run
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import note_digests
from fencepost.history.writer import bucket_file, bucket_of

_SMALL = HistoryRecipe(sends=3000)
_LYING = HistoryRecipe(sends=3000, lies=("lost-write", "duplicate"))
_TWO = {name: KEY_CHECKS[name] for name in ("inconsistent-offset", "duplicate")}


def _by_name(verdict: Verdict) -> dict[str, CheckResult]:
    return {result.check: result for result in verdict.checks}


def _invalid(verdict: Verdict) -> set[str]:
    return {one.check for one in verdict.checks if one.validity is Validity.INVALID}


def _unknown(verdict: Verdict) -> dict[str, str]:
    return {one.check: one.reason for one in verdict.checks if one.validity is Validity.UNKNOWN}


def _tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def _run(tmp_path: Path, recipe: HistoryRecipe = _SMALL) -> RunDirectory:
    run = RunDirectory(tmp_path / "run")
    write_synthetic_run(run, recipe)
    return run


@pytest.mark.spark
def test_a_good_run_is_valid_and_every_check_of_the_catalogue_answers(
    tmp_path: Path, tasks: TaskSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    run = _run(tmp_path)
    verdict = check_run(run, session=tasks)

    assert not _unknown(verdict)
    assert verdict.validity is Validity.VALID
    names = [entry.name for entry in asked(("operations", "records"))]
    assert [result.check for result in verdict.checks] == names
    assert read_verdict(run.verdict_path) == verdict
    assert verdict.run_id == "synthetic-0"
    assert not list(run.anomalies.iterdir())
    assert not list(here.iterdir())
    results = _by_name(verdict)
    assert all(results[name].case_count for name in (*KEY_ASSUMPTIONS, *KEY_CHECKS)), verdict
    lag = results["real-time-lag"]
    assert (lag.validity, lag.case_count) == (Validity.FIGURE, lag.figures["polls_count"])
    figures = results["statistics"].figures
    assert figures["send_ok_during_count"] > 100
    assert figures["send_latency_p50_ms"] <= figures["send_latency_max_ms"]


def test_every_planted_lie_is_found_and_its_anomalies_are_stored(
    tmp_path: Path, tasks: TaskSession
) -> None:
    lies = tuple(name for name in LIES if name in KEY_CHECKS)
    run = RunDirectory(tmp_path / "run")
    made = write_synthetic_run(run, HistoryRecipe(sends=20_000, lies=lies, crash_rate=0.05))
    verdict = check_run(run, session=tasks)

    assert _invalid(verdict) == made.raises
    assert not _unknown(verdict)
    assert {path.stem for path in run.anomalies.iterdir()} == made.raises
    for name in made.raises:
        table = pq.read_table(run.anomalies / f"{name}.parquet")
        result = _by_name(verdict)[name]
        assert table.schema.equals(ANOMALIES)
        assert table.num_rows == result.anomaly_count > 0
        assert set(result.examples) <= set(anomalies_of(table))
        assert f": {result.examples[0].key}: " in result.reason


def test_a_second_check_replaces_what_the_first_one_left(
    tmp_path: Path, tasks: TaskSession
) -> None:
    run = _run(tmp_path, _LYING)
    check_run(run, session=tasks)
    stale = run.anomalies / "stale.parquet"
    stale.write_bytes(b"")
    check_run(run, session=tasks)
    assert not stale.exists()


def test_a_broken_assumption_of_a_key_is_unknown_and_never_valid(
    tmp_path: Path, tasks: TaskSession
) -> None:
    run = _run(tmp_path, HistoryRecipe(sends=3000, lies=("unique-values", "sent-values")))
    verdict = check_run(run, session=tasks)
    unknown = _unknown(verdict)
    assert verdict.validity is Validity.UNKNOWN
    first = {name: one.examples[0] for name, one in _by_name(verdict).items() if one.examples}
    assert_proof(first["unique-values"], "values must be unique", sends_count=2)
    assert_proof(first["sent-values"], "no recorded operation sent it", key="t-0")
    assert {"unique-values", "sent-values"} <= unknown.keys()
    assert "t-0 breaks unique-values" in unknown["lost-write"]
    assert "skipped-poll" not in unknown


def test_a_kernel_that_crashes_is_unknown_and_the_others_answer(
    tmp_path: Path, tasks: TaskSession
) -> None:
    def crash(log: KeyLog) -> Found:
        raise ZeroDivisionError(f"no luck with {log.key}")

    run = _run(tmp_path, _LYING)
    verdict = check_run(
        run,
        session=tasks,
        checks={**KEY_CHECKS, "vanished": replace(KEY_CHECKS["vanished"], kernel=crash)},
    )
    assert _invalid(verdict) == {"lost-write", "internal-skipped-poll", "duplicate"}
    assert list(_unknown(verdict)) == ["vanished"]
    assert "crashed on t-0: ZeroDivisionError: no luck with t-0" in _unknown(verdict)["vanished"]


@pytest.mark.spark
def test_a_kernel_that_kills_its_process_is_unknown_and_the_others_answer(
    tmp_path: Path, tasks: TaskSession
) -> None:
    def kill(_: KeyLog) -> Found:
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("still here")

    run = _run(tmp_path, _LYING)
    verdict = check_run(
        run,
        session=tasks,
        checks={**_TWO, "vanished": replace(KEY_CHECKS["vanished"], kernel=kill)},
    )
    results = _by_name(verdict)
    assert results["duplicate"].validity is Validity.INVALID
    assert results["inconsistent-offset"].validity is Validity.VALID
    assert results["unique-values"].validity is Validity.VALID
    assert "its pass over the records died: " in results["vanished"].reason


@pytest.mark.spark
def test_a_job_that_outlasts_its_budget_does_not_answer(tasks: TaskSession) -> None:
    (answer,) = run_tasks(tasks, [60], time.sleep, budget_s=0.5)
    assert answer.failure == "its job died: it did not end within its budget of 0.5 s"


def test_a_check_that_was_not_run_is_unknown(tmp_path: Path, tasks: TaskSession) -> None:
    verdict = check_run(_run(tmp_path), session=tasks, checks=_TWO)
    not_run = set(KEY_CHECKS) - set(_TWO)
    assert _unknown(verdict) == dict.fromkeys(not_run, "it was not run")


def test_damaged_files_of_records_are_unknown_by_their_paths_and_hide_no_anomaly(
    tmp_path: Path, tasks: TaskSession
) -> None:
    run = _run(tmp_path, _LYING)
    missing, torn = (bucket_file(run.history, bucket_of(key)) for key in ("t-1", "t-2"))
    assert bucket_of("t-0") not in (bucket_of("t-1"), bucket_of("t-2"))
    missing.unlink()
    _tear(torn)
    verdict = check_run(run, session=tasks)
    assert _invalid(verdict) == {"lost-write", "internal-skipped-poll", "duplicate"}
    for check in ("vanished", "whole-records"):
        assert str(missing) in _unknown(verdict)[check]
        assert str(torn) in _unknown(verdict)[check]


def test_a_lost_row_of_records_breaks_an_assumption(tmp_path: Path, tasks: TaskSession) -> None:
    run = _run(tmp_path, _LYING)
    path = bucket_file(run.history, bucket_of("t-0"))
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path, store_schema=False)
    # As if the recorder had lost it before the history was sealed.
    write_manifest(run.manifest_path, replace(read_manifest(run.manifest_path), digests={}))
    note_digests(run)
    verdict = check_run(run, session=tasks)
    unknown = _unknown(verdict)
    assert "and the files of records hold" in unknown["whole-records"]
    assert "what was found proves nothing: " in unknown["lost-write"]
    assert _invalid(verdict) == {"duplicate"}


def test_damaged_operations_leave_only_what_needs_none_of_them(
    tmp_path: Path, tasks: TaskSession
) -> None:
    run = _run(tmp_path, _LYING)
    path = run.table_path("operations") / "part-0000.parquet"
    _tear(path)
    verdict = check_run(run, session=tasks)
    unknown = _unknown(verdict)
    assert _invalid(verdict) == {"duplicate"}
    assert str(path) in unknown["dense-indices"]
    assert str(path) in unknown["evidence"]
    assert "dense-indices" in unknown["skipped-poll"]


def test_a_run_without_history_is_an_error_that_names_it(
    tmp_path: Path, tasks: TaskSession
) -> None:
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(HarnessError, match=str(run.manifest_path)):
        check_run(run, session=tasks)
    write_synthetic_run(run, _SMALL)
    (run.table_path("operations") / "part-0000.parquet").unlink()
    with pytest.raises(HarnessError, match=str(run.table_path("operations"))):
        check_run(run, session=tasks)
