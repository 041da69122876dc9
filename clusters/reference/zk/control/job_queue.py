"""The controller's jobs, one after the other: plan, write, take what holds, plan again, finish.

A job is planned on what is known once the one before it is finished, so nothing is undecided then.
The writes of a plan are asked for together. Where one fails, its znodes are read: what they have is
taken, whoever wrote it, and the job is planned again upon it. So a plan says what is still to be
done, and nothing if it is done.

Source: Kafka's `ControllerEventManager`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Final, Protocol

from fencepost.clusters.node_port.effects import NOTE, Effects
from fencepost.clusters.node_port.notes import DECISION_ASKED, DECISION_SETTLED
from fencepost.clusters.node_port.zookeeper import GetData, Operation, ZkOutcome
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.zk.control.change import StateChange
from fencepost.clusters.reference.zk.control.context import Context
from fencepost.clusters.reference.zk.control.writes import (
    Multi,
    applied,
    holds,
    is_deposed,
    reads_of,
)
from fencepost.clusters.reference.zk.coroutines import Coroutines, NotDoneError, Result
from fencepost.clusters.reference.zk.session_requests import SessionRequests

JOBS_MAX: Final = 1_000
"""The most jobs in the queue: a broker has a handful under way, so that only a fault brings more.

Those of the controller's own are as many as there are brokers and topics.
"""
PLANS_MAX: Final = 100
"""The most plans of one job: each but the first is made because others wrote meanwhile."""


class JobRefusedError(NotDoneError):
    """A job is not done; `error` None: part of it may be."""

    def __init__(self, error: Error | None) -> None:
        super().__init__(error)
        self.error = error


@dataclass(frozen=True, slots=True)
class JobPlan:
    """The units that a job still needs, and what it answers once they hold."""

    units: list[Multi]
    response: Any = None


@dataclass(frozen=True, slots=True)
class _Job:
    plan: Callable[[], JobPlan]
    result: Result[Any]
    """The last plan's response, once that plan holds."""


class WorkPort(Protocol):
    """The rest of the controller."""

    def changed(self, now: int, changes: list[StateChange], effects: Effects) -> None:
        """These states are written; brokers are to be told."""

    def deposed(self, now: int, effects: Effects) -> None:
        """A write found a newer controller epoch."""


class JobQueue:
    """The queue of one controller epoch."""

    __slots__ = (
        "_context",
        "_coroutines",
        "_current",
        "_is_advancing",
        "_port",
        "_queue",
        "_zookeeper",
    )

    def __init__(
        self, context: Context, zookeeper: SessionRequests, coroutines: Coroutines, port: WorkPort
    ) -> None:
        self._context = context
        self._zookeeper = zookeeper
        self._coroutines = coroutines
        self._port = port
        self._queue: deque[_Job] = deque()
        self._current: _Job | None = None
        self._is_advancing = False

    async def done(self, plan: Callable[[], JobPlan], *, is_asked: bool = False) -> Any:
        """Do this after all that came before; return the response of the plan that holds.

        `is_asked`: a broker or a client asks for it, so it is refused where the queue is full.
        Raises JobRefusedError if it is not done.
        """
        if is_asked and len(self._queue) >= JOBS_MAX:
            raise JobRefusedError(Error.REQUEST_TIMED_OUT)
        return await Result[Any](partial(self._add, plan))

    def abandon(self, now: int, effects: Effects) -> None:
        """Do nothing more: the controller is another one."""
        current, self._current = self._current, None
        if current is not None:
            current.result.failed(now, JobRefusedError(None), effects)
        queue, self._queue = self._queue, deque()
        for job in queue:
            job.result.failed(now, JobRefusedError(Error.NOT_CONTROLLER), effects)

    def _add(
        self, plan: Callable[[], JobPlan], now: int, result: Result[Any], effects: Effects
    ) -> None:
        self._queue.append(_Job(plan, result))
        self._advance(now, effects)

    def _advance(self, now: int, effects: Effects) -> None:
        """Go on as long as no job waits for ZooKeeper. A job that is done may add others."""
        if self._is_advancing:
            return
        self._is_advancing = True
        while self._queue and self._current is None:
            self._current = job = self._queue.popleft()
            self._coroutines.run(now, self._do(job), effects)
        self._is_advancing = False

    async def _do(self, job: _Job) -> None:
        coroutines = self._coroutines
        written_count, is_done = 0, False
        while not is_done:
            plan = job.plan()
            if not any(one.operations for one in plan.units):
                self._take(plan, {})
                is_done = True
            elif written_count == PLANS_MAX:
                break
            else:
                written_count += 1
                is_done = await self._write(plan)
        self._current = None
        if written_count:
            coroutines.effects.append((NOTE, DECISION_SETTLED))
        if is_done:
            job.result.done(coroutines.now, plan.response, coroutines.effects)
        else:
            unknown = JobRefusedError(Error.UNKNOWN_SERVER_ERROR)
            job.result.failed(coroutines.now, unknown, coroutines.effects)
        self._advance(coroutines.now, coroutines.effects)

    async def _write(self, plan: JobPlan) -> bool:
        """Ask for the writes of a plan, and take what holds; return whether all of it does."""
        coroutines, units = self._coroutines, plan.units
        coroutines.effects.append((NOTE, DECISION_ASKED))
        asked = [index for index, one in enumerate(units) if one.operations]
        answers = await self._zookeeper.answers([units[index].operations for index in asked])
        done: dict[int, dict[str, int]] = {}
        for index, answer in zip(asked, answers, strict=True):
            if not answer.error:
                done[index] = _versions(units[index].operations, answer.outcomes)
            elif is_deposed(units[index], answer.outcomes):
                self._port.deposed(coroutines.now, coroutines.effects)
                raise NotDoneError
        failed = {index: reads_of(units[index]) for index in asked if index not in done}
        outcomes = iter(await self._zookeeper.read([*chain(*failed.values())]))
        amiss: list[tuple[GetData, ZkOutcome]] = []
        for index, reads in failed.items():
            found = [next(outcomes) for _ in reads]
            if holds(units[index], found):
                done[index] = _versions(reads, found)
            else:
                amiss += zip(reads, found, strict=True)
        self._take(plan, done)
        found_changes = (self._context.take(read.path, outcome) for read, outcome in amiss)
        changes = [one for one in found_changes if one is not None]
        self._port.changed(coroutines.now, changes, coroutines.effects)
        return len(done) == len(asked)

    def _take(self, plan: JobPlan, versions: Mapping[int, dict[str, int]]) -> None:
        """Take the units that hold; those that concern no znode hold once all others do."""
        coroutines, changes = self._coroutines, list[StateChange]()
        holds_all = all(index in versions for index, one in enumerate(plan.units) if one.operations)
        for index, one in enumerate(plan.units):
            if index in versions or (not one.operations and holds_all):
                changes += applied(self._context, one, versions.get(index, {}))
        self._port.changed(coroutines.now, changes, coroutines.effects)


def _versions(operations: Iterable[Operation], outcomes: Iterable[ZkOutcome]) -> dict[str, int]:
    """Return the versions of the znodes that were written or read."""
    return {
        operation.path: outcome.stat.version
        for operation, outcome in zip(operations, outcomes, strict=True)
        if outcome.stat is not None
    }
