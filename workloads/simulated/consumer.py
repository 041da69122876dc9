"""A simulated consumer: reads every key, and records its polls, as one node of the world.

It assigns itself all keys, and from time to time anew, going back over some records that it has
read: did what it saw stay? A poll gathers for a tenth of a second whatever its fetches bring. A
position beyond the log sends it back to the beginning, as `auto.offset.reset: earliest` does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from clusters.node_port.effects import NOTE, START, TICK, UNREACHABLE, Effects
from clusters.node_port.notes import READ_RECORDS
from clusters.reference.nodes.messages.client import MetadataResponse
from clusters.reference.nodes.messages.data import FetchResponse
from clusters.simulation.world import WAKE
from history.operation import Outcome
from workloads.simulated.fetching import Fetched, Fetches
from workloads.simulated.polls import Polls, Returned
from workloads.simulated.routes import Correlations, Routes

__all__ = ["ConsumerPlan", "SimulatedConsumer"]

_POLL_NS: Final = 100_000_000
_LOOK_BACK_MAX: Final = 10_000
"""Records of all keys together."""
_S: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerPlan:
    """The plan of one consumer."""

    process: int
    places: Sequence[tuple[str, int]]
    brokers: Sequence[int]
    reassign_s: float = 0.0
    """Mean time until it assigns anew; 0: never."""
    seed: int = 0
    noted: bool = False
    """True if it notes what it read, for an oracle."""


class SimulatedConsumer:
    """One logical client, with one poll open at a time. After `stop` it ends with a poll."""

    def __init__(self, plan: ConsumerPlan, polls: Polls) -> None:
        self._plan = plan
        self._polls = polls
        correlations = Correlations()
        self._routes = Routes(
            plan.places, brokers=plan.brokers, correlations=correlations, first=plan.process
        )
        self._fetches = Fetches(self._routes, correlations)
        self._positions = dict.fromkeys(range(len(plan.places)), 0)
        self._furthest = dict(self._positions)
        self._session = 0
        self._returned = Returned()
        self._poll: int | None = None
        self._draw = Random(f"{plan.seed}/{plan.process}")  # noqa: S311  # to be repeated
        self._reassign_ns: int | None = None
        self._stopping = False
        self.idle = False
        """True once it has ended."""
        self.poll_count = 0
        self.record_count = 0

    def stop(self) -> None:
        """End with the next poll that returns nothing."""
        self._stopping = True

    def give_up(self) -> None:
        """End now; a poll that is open stays open."""
        self._polls.close()

    def handle(self, now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take an event of the world."""
        if kind == FetchResponse.kind:
            for found in self._fetches.take(now, message):
                self._take(found, effects)
        elif kind in (TICK, START):
            self._tick(now, effects)
        elif kind == MetadataResponse.kind:
            self._routes.take(message)
        elif kind == UNREACHABLE:
            self._routes.unreachable(message.correlation)
            self._fetches.unreachable(now, message.correlation)

    def _tick(self, now: int, effects: Effects) -> None:
        if self.idle:
            return
        self._routes.tick(now, effects)
        returned = self._end_poll(now)
        if self._stopping and not returned:
            self.idle = True
            return
        if self._is_reassigned(now):
            self._reassign()
        self._poll = self._polls.invoke(time_ns=now)
        self._fetches.ask(now, self._positions, effects)
        effects.append((WAKE, now + _POLL_NS))

    def _end_poll(self, now: int) -> int:
        """End the poll that is open; return how many records it returned."""
        if self._poll is None:
            return 1
        returned, self._returned = self._returned, Returned()
        self._polls.complete(self._poll, returned, time_ns=now, outcome=Outcome.OK)
        self._poll = None
        self.poll_count += 1
        self.record_count += returned.count
        return returned.count

    def _take(self, found: Fetched, effects: Effects) -> None:
        number = found.number
        if found.out_of_range:
            self._positions[number] = 0
            return
        position = self._positions[number]
        for batch in found.batches:
            skipped = position - batch.base_offset
            if skipped >= batch.count:
                continue
            values = batch.payload[skipped:] if skipped > 0 else batch.payload
            first = max(position, batch.base_offset)
            self._returned.add(number, first, values, self._session)
            position = batch.base_offset + batch.count
        if self._plan.noted:
            effects.append((NOTE, READ_RECORDS, self._routes.keys[number], found.batches))
        self._positions[number] = position
        self._furthest[number] = max(self._furthest[number], position)

    def _is_reassigned(self, now: int) -> bool:
        if not self._plan.reassign_s or self._stopping:
            return False
        due_ns = self._reassign_ns
        if due_ns is None or now >= due_ns:
            wait_s = self._draw.expovariate(1 / self._plan.reassign_s)
            self._reassign_ns = now + int(wait_s * _S) + _S
        return due_ns is not None and now >= due_ns

    def _reassign(self) -> None:
        """Begin a new session of all keys, each from somewhere before where it was."""
        back_max = _LOOK_BACK_MAX // len(self._positions)
        self._session += 1
        self._fetches.forget()
        for number, furthest in self._furthest.items():
            back = int(self._draw.random() * (back_max + 1))
            self._positions[number] = max(furthest - back, 0)
