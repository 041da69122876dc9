"""The controller's jobs, one after the other: plan, write, take what holds, plan again, finish.

A job is planned on what is known once the one before it is finished, so nothing is undecided then.
The writes of a plan are asked for together. Where one fails, its znodes are read: what they have is
taken, whoever wrote it, and the job is planned again upon it. So a plan says what is still to be
done, and nothing if it is done.

Source: Kafka's `ControllerEventManager`.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from clusters.node_port.effects import NOTE, Effects
from clusters.node_port.notes import DECISION_ASKED, DECISION_SETTLED
from clusters.node_port.zookeeper import ZkError, ZkOutcome
from clusters.reference.nodes.errors import Error
from clusters.reference.zk.asking import Asking, ZkAnswer
from clusters.reference.zk.control.change import StateChange
from clusters.reference.zk.control.context import Context
from clusters.reference.zk.control.reading import read_all
from clusters.reference.zk.control.writes import Unit, applied, holds, is_deposed, reads_of

__all__ = ["JOBS_MAX", "PLANS_MAX", "Job", "JobQueue", "Plan", "WorkPort"]

JOBS_MAX: Final = 1_000
"""The most jobs in the queue: a broker has a handful under way, so that only a fault brings more.

Those of the controller's own are as many as there are brokers and topics.
"""
PLANS_MAX: Final = 100
"""The most plans of one job: each but the first is made because others wrote meanwhile."""
_EXPIRED: Final = int(ZkError.SESSION_EXPIRED)


@dataclass(frozen=True, slots=True)
class Plan:
    """The units that a job still needs, and what it answers once they hold."""

    units: list[Unit]
    response: Any = None


@dataclass(frozen=True, slots=True)
class Job:
    """One thing to be decided."""

    plan: Callable[[], Plan]
    finish: Callable[[int, Any, Effects], None]
    """(now, the last plan's response, effects): it is done."""
    refuse: Callable[[Error | None, Effects], None] | None = None
    """(error, effects): it is not done; None: part of it may be. None: nobody waits for it."""


class WorkPort(Protocol):
    """The rest of the controller."""

    def changed(self, now: int, changes: list[StateChange], effects: Effects) -> None:
        """These states are written; brokers are to be told."""

    def deposed(self, now: int, effects: Effects) -> None:
        """A write found a newer controller epoch."""


class JobQueue:
    """The queue of one controller epoch."""

    __slots__ = (
        "_answers",
        "_asked_count",
        "_asking",
        "_context",
        "_current",
        "_is_advancing",
        "_plan",
        "_plans_count",
        "_port",
        "_queue",
        "_wrote",
        "is_over",
    )

    def __init__(self, context: Context, asking: Asking, port: WorkPort) -> None:
        self._context = context
        self._asking = asking
        self._port = port
        self._queue: deque[Job] = deque()
        self._current: Job | None = None
        self._plan = Plan([])
        self._answers: dict[int, ZkAnswer] = {}
        self._asked_count = 0
        self._plans_count = 0
        self._wrote = False
        self._is_advancing = False
        self.is_over = False

    def add(self, now: int, job: Job, effects: Effects) -> None:
        """Do this after all that was added before."""
        if job.refuse is not None and len(self._queue) >= JOBS_MAX:
            job.refuse(Error.REQUEST_TIMED_OUT, effects)
            return
        self._queue.append(job)
        self._advance(now, effects)

    def abandon(self, effects: Effects) -> None:
        """Do nothing more: the controller is another one."""
        self.is_over = True
        current, self._current = self._current, None
        if current is not None and current.refuse is not None:
            current.refuse(None, effects)
        while self._queue:
            job = self._queue.popleft()
            if job.refuse is not None:
                job.refuse(Error.NOT_CONTROLLER, effects)

    def _advance(self, now: int, effects: Effects) -> None:
        """Go on as long as no job waits for ZooKeeper. A job that is finished may add others."""
        if self._is_advancing:
            return
        self._is_advancing = True
        while self._queue and self._current is None:
            self._current = self._queue.popleft()
            self._plans_count, self._wrote = 0, False
            self._replan(now, effects)
        self._is_advancing = False

    def _replan(self, now: int, effects: Effects) -> None:
        job = self._current
        assert job is not None
        self._plans_count += 1
        plan = self._plan = job.plan()
        if not any(one.operations for one in plan.units):
            self._take(now, {}, effects)
            self._finish(now, job, effects)
        elif self._plans_count > PLANS_MAX:
            self._give_up(job, effects)
        else:
            self._write(plan, effects)

    def _write(self, plan: Plan, effects: Effects) -> None:
        self._wrote = True
        self._answers = {}
        self._asked_count = sum(1 for one in plan.units if one.operations)
        effects.append((NOTE, DECISION_ASKED))
        for index, one in enumerate(plan.units):
            if one.operations:
                self._asking.ask(one.operations, partial(self._answered, plan, index), effects)

    def _finish(self, now: int, job: Job, effects: Effects) -> None:
        self._end(effects)
        if not self.is_over:
            job.finish(now, self._plan.response, effects)

    def _give_up(self, job: Job, effects: Effects) -> None:
        self._end(effects)
        if job.refuse is not None:
            job.refuse(Error.UNKNOWN_SERVER_ERROR, effects)

    def _end(self, effects: Effects) -> None:
        self._current = None
        if self._wrote:
            effects.append((NOTE, DECISION_SETTLED))

    def _answered(
        self, plan: Plan, index: int, now: int, answer: ZkAnswer, effects: Effects
    ) -> None:
        if self.is_over or answer.response.error == _EXPIRED:
            return
        self._answers[index] = answer
        if len(self._answers) == self._asked_count:
            self._settle(now, plan, effects)

    def _settle(self, now: int, plan: Plan, effects: Effects) -> None:
        """All writes of a plan are answered."""
        failed = []
        done: dict[int, dict[str, int]] = {}
        for index, answer in sorted(self._answers.items()):
            outcomes = answer.response.outcomes
            if not answer.response.error:
                done[index] = _versions(plan.units[index], outcomes)
            elif is_deposed(plan.units[index], outcomes):
                self._port.deposed(now, effects)
                return
            else:
                failed.append(index)
        reads = [read for index in failed for read in reads_of(plan.units[index])]

        def looked(now: int, outcomes: list[ZkOutcome], effects: Effects) -> None:
            found = dict(zip(failed, _parted(plan, failed, outcomes), strict=True))
            self._looked(now, done, found, effects)

        read_all(self._asking, now, reads, looked, effects)

    def _looked(
        self,
        now: int,
        done: dict[int, dict[str, int]],
        found: dict[int, list[ZkOutcome]],
        effects: Effects,
    ) -> None:
        """Take what holds; plan again if something does not that was to.

        `found` is what was read of the units that failed.
        """
        if self.is_over:
            return
        units = self._plan.units
        amiss = {index for index, outcomes in found.items() if not holds(units[index], outcomes)}
        done |= {
            index: _versions_read(units[index], outcomes)
            for index, outcomes in found.items()
            if index not in amiss
        }
        self._take(now, done, effects, but=amiss)
        changes = [
            change
            for index in sorted(amiss)
            for read, outcome in zip(reads_of(units[index]), found[index], strict=True)
            if (change := self._context.take(read.path, outcome)) is not None
        ]
        self._port.changed(now, changes, effects)
        job = self._current
        assert job is not None
        if amiss:
            self._replan(now, effects)
        else:
            self._finish(now, job, effects)
        self._advance(now, effects)

    def _take(
        self,
        now: int,
        versions: dict[int, dict[str, int]],
        effects: Effects,
        *,
        but: set[int] | frozenset[int] = frozenset(),
    ) -> None:
        """Take the units that hold; those that concern no znode hold once all others do."""
        changes: list[StateChange] = []
        for index, one in enumerate(self._plan.units):
            if index in versions or (not one.operations and not but):
                changes += applied(self._context, one, versions.get(index, {}))
        self._port.changed(now, changes, effects)


def _versions(one: Unit, outcomes: tuple[ZkOutcome, ...]) -> dict[str, int]:
    """Return the versions of a unit's znodes after it was carried out."""
    return {
        operation.path: outcome.stat.version
        for operation, outcome in zip(one.operations, outcomes, strict=True)
        if outcome.stat is not None
    }


def _versions_read(one: Unit, outcomes: list[ZkOutcome]) -> dict[str, int]:
    """Return the versions of a unit's znodes as they were found."""
    return {
        read.path: outcome.stat.version
        for read, outcome in zip(reads_of(one), outcomes, strict=True)
        if outcome.stat is not None
    }


def _parted(plan: Plan, indices: list[int], outcomes: list[ZkOutcome]) -> list[list[ZkOutcome]]:
    """Return what was read of each of these units."""
    rest = iter(outcomes)
    return [[next(rest) for _ in reads_of(plan.units[index])] for index in indices]
