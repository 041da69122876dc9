"""A user who ends a run while Spark works ends the run, and not one job of it."""

from threading import Event
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from py4j.protocol import Py4JError

from fencepost.checkers.runner.spark_tasks import SparkTasks
from fencepost.checkers.runner.tasks import JobError, run_tasks


class Session:
    """As much of a session as a job needs; collecting ends as it does in PySpark."""

    def __init__(self, *, interrupted: bool) -> None:
        self.interrupted = interrupted
        self.job_count = 0
        self.sparkContext = SimpleNamespace(
            defaultParallelism=1, addJobTag=lambda _: None, removeJobTag=lambda _: None
        )

    def range(self, *_: int) -> Any:
        return self

    def mapInArrow(self, *_: object) -> Any:  # noqa: N802  # as Spark has it
        return self

    def toArrow(self) -> NoReturn:  # noqa: N802  # as Spark has it
        self.job_count += 1
        try:
            if self.interrupted:
                raise KeyboardInterrupt
        finally:
            # PySpark asks for the result in any case, and a cancelled job has none.
            raise Py4JError("An error occurred while calling o684.getResult.")


def test_an_interrupt_that_an_error_of_sparks_hides_is_raised() -> None:
    session = Session(interrupted=True)
    with pytest.raises(KeyboardInterrupt):
        run_tasks(SparkTasks(session), [1, 2, 3, 4], str, budget_s=60)  # type: ignore[arg-type]
    assert session.job_count == 1, "the job was not halved"


def test_a_job_that_dies_of_itself_is_an_error_of_the_job() -> None:
    session = Session(interrupted=False)
    with pytest.raises(JobError, match="getResult"):
        run_tasks(SparkTasks(session), [1], str, budget_s=60, apart=False)  # type: ignore[arg-type]


def test_while_a_job_goes_on_it_is_told_how_many_of_its_tasks_are_done() -> None:
    told: list[tuple[int, int]] = []
    heard = Event()
    stages = {1: SimpleNamespace(numCompletedTasks=3, numTasks=4), 2: None}
    stages[3] = SimpleNamespace(numCompletedTasks=0, numTasks=8)

    class Slow(Session):
        def toArrow(self) -> NoReturn:  # noqa: N802  # as Spark has it
            assert heard.wait(10)
            super().toArrow()

    def shown(done: int, count: int) -> None:
        told.append((done, count))
        heard.set()

    session = Slow(interrupted=False)
    session.sparkContext.statusTracker = lambda: SimpleNamespace(
        getActiveStageIds=lambda: list(stages), getStageInfo=stages.get
    )
    with pytest.raises(JobError):
        run_tasks(SparkTasks(session, shown), [1], str, budget_s=60, apart=False)  # type: ignore[arg-type]
    assert set(told) == {(3, 12)}
