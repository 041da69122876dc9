"""The jobs that run the tasks of large keys: each task is a callable with a worker of its own.

A job that dies raises `checkers.runner.tasks.JobError`, so that the checks are run one by one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.checkers.runner.tasks import TaskResult, TaskSession, exchanged, run_tasks

Dealt = tuple[Any, Sequence[tuple[int, Any]]]
"""The answer of a task, and contents by the number of what is judged together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """The place where tasks run."""

    session: TaskSession
    budget_s: float
    """The budget of one job."""

    def answers(self, tasks: Sequence[Callable[[], Any]]) -> list[TaskResult[Any, Any]]:
        """Return the answer of each task, in order."""
        return run_tasks(
            self.session, tasks, _called, budget_s=self.budget_s, workers=len(tasks), apart=False
        )

    def exchanged(
        self,
        tasks: Sequence[Callable[[], Dealt]],
        judge: Callable[[int, Sequence[Any]], Any],
    ) -> tuple[list[TaskResult[Any, Any]], dict[int, TaskResult[int, Any]]]:
        """Return the answer of each task, and what `judge` makes of all that is for a number."""
        return exchanged(self.session, tasks, _called, judge, budget_s=self.budget_s)


def _called(task: Callable[[], Any]) -> Any:
    return task()
