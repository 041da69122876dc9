"""Sealed list-append histories, judged whole: every planted lie is found, and none is invented."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from proving import cycle_class

from fencepost.checkers.check import check_run
from fencepost.checkers.cycles import group
from fencepost.checkers.cycles.levels import is_forbidden
from fencepost.checkers.proof import Proof
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.checkers.verdict import CheckResult, Validity, Verdict
from fencepost.generators.list_append import (
    LIES,
    ListAppendRecipe,
    SyntheticLists,
    write_synthetic_transactions,
)
from fencepost.history.models import Isolation
from fencepost.history.run_directory import RunDirectory


def judged(
    tmp_path: Path, tasks: TaskSession, recipe: ListAppendRecipe
) -> tuple[Verdict, SyntheticLists]:
    run = RunDirectory(tmp_path / "run")
    made = write_synthetic_transactions(run, recipe)
    return check_run(run, session=tasks), made


def of_check(verdict: Verdict, name: str) -> CheckResult:
    (result,) = [result for result in verdict.checks if result.check == name]
    return result


@pytest.mark.spark
def test_a_strictly_serializable_history_is_valid(tmp_path: Path, tasks: TaskSession) -> None:
    verdict, _ = judged(tmp_path, tasks, ListAppendRecipe(transactions=3000, crash_rate=0.05))
    mine = [of_check(verdict, entry.name) for entry in group.CHECKS[0].entries]
    assert {check.validity for check in mine} == {Validity.VALID}, mine
    assert all(check.case_count for check in mine), mine
    assert verdict.validity is Validity.VALID
    cycles = of_check(verdict, "dependency-cycle")
    assert cycles.figures["transaction_count"] == 3000
    assert 2000 < cycles.case_count < 3000


@pytest.mark.parametrize("steps_max", [0, 1_000_000], ids=["edges-by-segment", "edges-at-once"])
@pytest.mark.parametrize("isolation", [Isolation.READ_COMMITTED, Isolation.STRICT_SERIALIZABLE])
def test_every_lie_is_found_and_counts_by_what_was_promised(
    tmp_path: Path,
    tasks: TaskSession,
    monkeypatch: pytest.MonkeyPatch,
    isolation: Isolation,
    steps_max: int,
) -> None:
    monkeypatch.setattr(group, "_WHOLE_STEPS_MAX", steps_max)
    recipe = ListAppendRecipe(transactions=2000, lies=tuple(LIES), isolation=isolation)
    verdict, made = judged(tmp_path, tasks, recipe)
    for number, (name, lie) in enumerate(LIES.items()):
        rows = pq.read_table(tmp_path / "run" / "anomalies" / f"{lie.check}.parquet").to_pylist()
        mine = [row for row in rows if row["key"].startswith(f"lie-{number}-")]
        assert mine, f"{name} was not found"
        if lie.kind:
            proof = Proof.of_columns(mine[0])
            assert (cycle_class(proof), proof.fact("level")) == (lie.kind, lie.level), mine
        assert mine[0]["allowed"] == (not is_forbidden(lie.level, promise=isolation)), mine
    invented = [
        anomaly.key
        for check in verdict.checks
        for anomaly in check.examples
        if not anomaly.key.startswith("lie-")
    ]
    assert not invented
    assert len(made.lies) == len(LIES)


def test_a_history_with_a_missing_file_is_unknown_and_what_is_found_stands(
    tmp_path: Path, tasks: TaskSession
) -> None:
    run = RunDirectory(tmp_path / "run")
    write_synthetic_transactions(run, ListAppendRecipe(transactions=500, lies=("garbage-element",)))
    files = sorted(run.table_path("micro_operations").glob("*.parquet"))
    lie = {path for path in files if "lie-0-x" in pq.read_table(path)["key"].to_pylist()}
    next(path for path in files if path not in lie).unlink()
    verdict = check_run(run, session=tasks)
    assert of_check(verdict, "garbage-element").validity is Validity.INVALID
    assert of_check(verdict, "dependency-cycle").validity is Validity.UNKNOWN
