"""How work is cut into Spark tasks, and what its calls share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from metadata_logs import FACTS, metadata_log

from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.runner.tables import SealedFile, byte_count
from fencepost.checkers.runner.tasks import InProcessTasks, JobError, Parcel, exchanged, run_tasks

MB = 1 << 20


@dataclass
class Counting:
    """Tasks in this process on four cores, where an interrupt stands for a worker's end."""

    cores: int = 4
    workers: list[int] = field(default_factory=list)
    budgets_s: list[float] = field(default_factory=list)

    def parcels(self, *args: Any, workers: int, **others: Any) -> list[Parcel]:
        self.workers.append(workers)
        self.budgets_s.append(others["budget_s"])
        try:
            return InProcessTasks().parcels(*args, workers=workers, **others)
        except KeyboardInterrupt as error:
            raise JobError("the worker was killed") from error


@pytest.mark.parametrize(
    ("pieces", "megabytes", "count"),
    [
        (16, 0, 4),  # small files share workers, and every core has one
        (3, 0, 3),  # never more workers than pieces
        (16, 9, 9),
        (16, 500, 16),  # a large file has one for itself
    ],
)
def test_small_pieces_of_work_share_a_worker(pieces: int, megabytes: int, count: int) -> None:
    session = Counting()
    answers = run_tasks(session, range(pieces), str, budget_s=1, bytes_in_all=megabytes * MB)
    assert [answer.content for answer in answers] == [str(number) for number in range(pieces)]
    assert session.workers == [count]


@pytest.mark.parametrize(("pieces", "budget_s"), [(1, 60), (500, 60), (2_500, 300)])
def test_the_tasks_of_a_night_have_the_time_of_a_night(pieces: int, budget_s: float) -> None:
    session = Counting()
    run_tasks(session, range(pieces), str, budget_s=60)
    assert session.budgets_s == [budget_s]


def _deadly(task: int) -> int:
    if task in (3, 9):
        raise KeyboardInterrupt
    if task == 5:
        raise ZeroDivisionError("no luck")
    return 2 * task


def test_a_task_that_kills_its_worker_costs_no_other() -> None:
    answers = run_tasks(Counting(), range(10), _deadly, budget_s=1)
    assert [one.task for one in answers if one.died] == [3, 9]
    assert {one.failure for one in answers if one.died} == {"its job died: the worker was killed"}
    assert answers[5].failure == "the check crashed: ZeroDivisionError: no luck"
    others = [one for one in answers if not one.failure]
    assert [one.content for one in others] == [2 * one.task for one in others]
    assert len(others) == 7


def test_who_wants_to_know_of_a_job_that_dies_is_told() -> None:
    with pytest.raises(JobError, match="the worker was killed"):
        run_tasks(Counting(), range(10), _deadly, budget_s=1, apart=False)


def _dealt(task: int) -> tuple[str, list[tuple[int, int]]]:
    return f"own {task}", [(task % 2, task), (2, 10 * task)]


def _sum(number: int, contents: Sequence[int]) -> int:
    if number == 2:
        raise ZeroDivisionError("no luck")
    return sum(contents)


def test_what_tasks_deal_out_is_judged_by_number() -> None:
    own, judged = exchanged(InProcessTasks(), range(6), _dealt, _sum, budget_s=1)
    assert [one.content for one in own] == [f"own {task}" for task in range(6)]
    assert {number: one.content for number, one in judged.items()} == {0: 6, 1: 9, 2: None}
    assert "no luck" in judged[2].failure


def test_a_file_that_is_not_there_has_no_bytes(tmp_path: Path) -> None:
    path = tmp_path / "some"
    assert byte_count(SealedFile(path=str(path), digest="")) == 0
    path.write_bytes(b"123")
    assert byte_count(SealedFile(path=str(path), digest="")) == 3


def test_a_log_is_replayed_once_for_all_checks_that_share_its_table() -> None:
    tables = {"metadata_log": metadata_log("1 register 1")}
    seen = MetadataView(run=FACTS, metadata_log=tables["metadata_log"])
    assert seen.log is seen.log
    assert list(seen.brokers) == [1]
