"""One way to run tasks: many values, one piece of work, and for each value an answer or a reason.

A task is a value, the work makes something small of it, and both can be pickled: what crosses
between processes is written and read by one version of one program, and never stored. The work is
shared by the tasks that one worker does one after the other, so what it keeps (tables that it has
read) is read once a worker.

An exception of a task is the failure of that task alone. A task that ends its worker (killed for
its memory, say) takes the whole job along; the tasks are then halved and each half has a job of its
own, down to the one that dies again.

Where tasks run is the session's business: on Spark (`checkers.runner.spark_tasks`), or in the
calling process (`InProcessTasks`).
"""

import logging
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final, Generic, Protocol, TypeVar

from fencepost.checkers.runner.memory import give_back, out_of_memory
from fencepost.history.failure import HarnessError

_LOG: Final = logging.getLogger(__name__)
_LONG_S: Final = 0.1
"""A task that took longer may have freed what the next one would hold beside its own."""
_WORKER_BYTES: Final = 1 << 20
_TASKS_A_BUDGET: Final = 500
"""The size in Parquet bytes that takes much longer to judge than a worker takes to start."""

Task = TypeVar("Task")
Content = TypeVar("Content")

Parcel = tuple[int, bytes]
"""A number, and what is for it, pickled."""


class JobError(Exception):
    """A job that did not answer: why, in one line."""


class TaskSession(Protocol):
    """The place where tasks run."""

    @property
    def cores(self) -> int:
        """The number of workers that run at the same time."""

    def parcels(
        self,
        deal: Callable[[Iterable[int]], Iterator[Parcel]],
        count: int,
        *,
        workers: int,
        judge: Callable[[int, Sequence[bytes]], Parcel] | None,
        budget_s: float,
    ) -> list[Parcel]:
        """Return what `deal` makes of the numbers below `count`, cut into `workers` stretches.

        `judge`: makes one parcel of all those for a number, unless it is None.
        Raises JobError if the job dies or outlasts its budget.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskResult(Generic[Task, Content]):
    """The outcome of a task."""

    task: Task
    content: Content | None = None
    """The result of the work; None if it failed."""
    failure: str = ""
    """The reason why it failed; empty if it did not."""
    seconds: float = 0.0
    died: bool = False
    """It took its job along."""

    @property
    def result(self) -> Content:
        """Return the result of a task that did not fail."""
        assert self.content is not None, self.failure
        return self.content


def run_tasks(
    session: TaskSession,
    tasks: Sequence[Task],
    work: Callable[[Task], Content],
    *,
    budget_s: float,
    bytes_in_all: int = 0,
    workers: int | None = None,
    apart: bool = True,
    neighbours: bool = False,
) -> list[TaskResult[Task, Content]]:
    """Run the work on each task; the answers in the order of the tasks.

    `workers`: how many; by default what the `bytes_in_all` of Parquet that they read are worth.
    `neighbours`: tasks that follow each other share what they read, and go to one worker.
    `budget_s`: of a job of up to 500 tasks; one of more may take longer, in proportion. If `apart`
    is false, a job that dies raises JobError instead of being halved.
    """
    if not tasks:
        return []
    count = min(workers or worth(session, bytes_in_all), len(tasks))
    # A worker takes every nth, so that what comes first (the largest, neighbours) is dealt out.
    dealt_out = (place for first in range(count) for place in range(first, len(tasks), count))
    order = list(range(len(tasks))) if neighbours else list(dealt_out)
    dealt = _Each(tuple(tasks[place] for place in order), work)
    own_budget_s = budget_s * max(1.0, len(tasks) / _TASKS_A_BUDGET)
    try:
        found = session.parcels(dealt, len(tasks), workers=count, judge=None, budget_s=own_budget_s)
    except JobError as error:
        if not apart:
            raise
        if len(tasks) == 1:
            return [TaskResult(task=tasks[0], failure=f"its job died: {error}", died=True)]
        _LOG.warning("a job of %s tasks died (%s); halving it", len(tasks), error)
        half = len(tasks) // 2
        return [
            answer
            for part in (tasks[:half], tasks[half:])
            for answer in run_tasks(
                session,
                part,
                work,
                budget_s=budget_s,
                bytes_in_all=bytes_in_all,
                workers=workers,
                neighbours=neighbours,
            )
        ]
    by_place = {order[number]: content for number, content in found}
    return [_unpacked(task, by_place.get(place)) for place, task in enumerate(tasks)]


def worth(session: TaskSession, bytes_in_all: int) -> int:
    """Return the number of workers for this many bytes of Parquet: at least one for every core."""
    return max(session.cores, bytes_in_all // _WORKER_BYTES)


def exchanged(
    session: TaskSession,
    tasks: Sequence[Task],
    work: Callable[[Task], tuple[Content, Sequence[tuple[int, Any]]]],
    judge: Callable[[int, Sequence[Any]], Any],
    *,
    budget_s: float,
) -> tuple[list[TaskResult[Task, Content]], dict[int, TaskResult[int, Any]]]:
    """Run the work, which answers a task and deals out contents by number, and judge these.

    Returns the answers of the tasks, and by number what `judge` made of all contents for it. A
    worker of its own does each task. Raises JobError if the job dies.
    """
    if not tasks:
        return [], {}
    found = session.parcels(
        _Dealt(tuple(tasks), work),
        len(tasks),
        workers=len(tasks),
        judge=_Judged(judge),
        budget_s=budget_s,
    )
    by_number = dict(found)
    own = [_unpacked(task, by_number.pop(_own(place), None)) for place, task in enumerate(tasks)]
    return own, {number: _unpacked(number, content) for number, content in by_number.items()}


@dataclass(frozen=True, slots=True)
class InProcessTasks:
    """The calling process as a `TaskSession`: tasks are done one after the other.

    Inside a Spark task there is no session, and a run may be so small that it is one task's work:
    the self-test judges hundreds of them, a task each. Only Spark's own part is left out.
    """

    cores: int = 1

    def parcels(
        self,
        deal: Callable[[Iterable[int]], Iterator[Parcel]],
        count: int,
        *,
        workers: int,  # noqa: ARG002  # the port's
        judge: Callable[[int, Sequence[bytes]], Parcel] | None,
        budget_s: float,  # noqa: ARG002  # the port's
    ) -> list[Parcel]:
        """See the port; nothing bounds the time."""
        found = list(deal(range(count)))
        if judge is None:
            return found
        received: dict[int, list[bytes]] = {}
        for number, content in found:
            received.setdefault(number, []).append(content)
        return [judge(number, contents) for number, contents in received.items()]


@dataclass(frozen=True, slots=True)
class _Each:
    """Tasks by number, each answered."""

    tasks: tuple[Any, ...]
    work: Callable[[Any], Any]

    def __call__(self, numbers: Iterable[int]) -> Iterator[Parcel]:
        for number in numbers:
            yield number, _answered(self.work, self.tasks[number])


@dataclass(frozen=True, slots=True)
class _Dealt:
    """The same, of tasks that deal contents out."""

    tasks: tuple[Any, ...]
    work: Callable[[Any], tuple[Any, Sequence[tuple[int, Any]]]]

    def __call__(self, numbers: Iterable[int]) -> Iterator[Parcel]:
        for number in numbers:
            dealt: list[tuple[int, Any]] = []
            yield _own(number), _answered(self._kept, (self.tasks[number], dealt))
            yield from ((receiver, pickle.dumps(content)) for receiver, content in dealt)

    def _kept(self, task: tuple[Any, list[tuple[int, Any]]]) -> Any:
        content, parcels = self.work(task[0])
        task[1].extend(parcels)
        return content


@dataclass(frozen=True, slots=True)
class _Judged:
    """All that is for one number, judged; the answer of a task is passed on as it is."""

    judge: Callable[[int, Sequence[Any]], Any]

    def __call__(self, number: int, contents: Sequence[bytes]) -> Parcel:
        if number < 0:
            (only,) = contents
            return number, only
        return number, _answered(self._of, (number, contents))

    def _of(self, task: tuple[int, Sequence[bytes]]) -> Any:
        return self.judge(task[0], [pickle.loads(one) for one in task[1]])  # noqa: S301  # our own


def _own(number: int) -> int:
    """Return the number under which the answer of a task itself travels."""
    return -1 - number


def _answered(work: Callable[[Any], Any], task: Any) -> bytes:
    started, content, failure = perf_counter(), b"", ""
    try:
        content = pickle.dumps(work(task), protocol=pickle.HIGHEST_PROTOCOL)
    except HarnessError as error:
        failure = str(error)
    except MemoryError as error:
        failure = out_of_memory(error)
    except Exception as error:  # noqa: BLE001  # whatever it is, this task alone has no answer
        failure = f"the check crashed: {type(error).__name__}: {error}"
    seconds = perf_counter() - started
    if seconds > _LONG_S:
        give_back()
    return pickle.dumps((content, failure, seconds))


def _unpacked(task: Task, packed: bytes | None) -> TaskResult[Task, Any]:
    if packed is None:
        return TaskResult(task=task, failure="a task did not answer")
    content, failure, seconds = pickle.loads(packed)  # noqa: S301  # of our own tasks
    if failure:
        return TaskResult(task=task, failure=failure, seconds=seconds)
    return TaskResult(task=task, content=pickle.loads(content), seconds=seconds)  # noqa: S301
