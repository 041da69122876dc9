"""Simulated readers of records: consumers, and the final reader when all has healed.

A consumer reads every key, and records its polls, as one node of the world. It assigns itself all
keys, and from time to time anew, going back over some records that it has read: did what it saw
stay? A poll gathers for a tenth of a second whatever its fetches bring. A position beyond the log
sends it back to the beginning, as `auto.offset.reset: earliest` does.

A final reader reads keys from their first to their last offset. Each read is one operation. It asks
the leader for the end of the log first, and is ok only if it got there; one that does not in its
share of the time is info, and the key is read again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

from fencepost.clusters.node_port.effects import NOTE, SEND, START, TICK, UNREACHABLE, Effects
from fencepost.clusters.node_port.notes import READ_RECORDS
from fencepost.clusters.reference.nodes.messages.client import MetadataResponse
from fencepost.clusters.reference.nodes.messages.data import (
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from fencepost.clusters.simulation.world import WAKE
from fencepost.history.operation import F, Outcome
from fencepost.workloads.generators.agenda import Agenda
from fencepost.workloads.simulated.fetching import ClientFetches, Fetched
from fencepost.workloads.simulated.polls import Polls, Returned
from fencepost.workloads.simulated.routes import Correlations, Routes

_POLL_NS: Final = 100_000_000
_LOOK_BACK_MAX: Final = 10_000
"""Records of all keys together."""
_S: Final = 1_000_000_000
_LOOK_NS: Final = 20_000_000
_END_NS: Final = 3_000_000_000
"""The time-out of one question for the end of a log."""
_LATEST: Final = -1
_TIMED_OUT: Final = -185
"""librdkafka's code for a request that got no answer in time."""


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
        self._fetches = ClientFetches(self._routes, correlations)
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


class SimulatedReader:
    """One logical client, with one read open at a time. It is `idle` when all is read or late."""

    def __init__(
        self,
        process: int,
        places: Sequence[tuple[str, int]],
        *,
        brokers: Sequence[int],
        polls: Polls,
        deadline_ns: int,
    ) -> None:
        self._polls = polls
        self._correlations = Correlations()
        self._routes = Routes(
            places, brokers=brokers, correlations=self._correlations, first=process
        )
        self._fetches = ClientFetches(self._routes, self._correlations)
        self._agenda = Agenda(range(len(places)), deadline_ns=deadline_ns)
        self._read: int | None = None
        """The number of the operation that is open."""
        self._key = 0
        self._until_ns = 0
        self._end: int | None = None
        self._asked = 0
        self._asked_ns = 0
        self._position = 0
        self._count = 0
        self._returned = Returned()
        self.idle = False

    @property
    def done(self) -> tuple[int, ...]:
        """The places of the keys that were read completely."""
        return self._agenda.done

    def give_up(self) -> None:
        """End the recording."""
        self._polls.close()

    def handle(self, now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take an event of the world."""
        if kind in (TICK, START):
            self._routes.tick(now, effects)
            self._go_on(now, effects)
            effects.append((WAKE, now + _LOOK_NS))
        elif kind == FetchResponse.kind:
            self._take(now, message)
            self._go_on(now, effects)
        elif kind == ListOffsetsResponse.kind:
            self._limited(message)
            self._go_on(now, effects)
        elif kind == MetadataResponse.kind:
            self._routes.take(message)
        elif kind == UNREACHABLE:
            self._routes.unreachable(message.correlation)
            self._routes.doubt(now)
            self._fetches.unreachable(now, message.correlation)

    def _go_on(self, now: int, effects: Effects) -> None:
        if self.idle:
            return
        if self._read is None and not self._begin(now):
            self.idle = True
            return
        if self._end is not None and self._position >= self._end:
            self._finish(now, Outcome.OK, 0)
            self._go_on(now, effects)
        elif now >= self._until_ns:
            self._finish(now, Outcome.INFO, _TIMED_OUT)
        elif self._end is None:
            self._ask_end(now, effects)
        else:
            self._fetches.ask(now, {self._key: self._position}, effects)

    def _begin(self, now: int) -> bool:
        following = self._agenda.next(now)
        if following is None:
            return False
        self._key, self._until_ns = following
        self._read = self._polls.invoke(time_ns=now, f=F.FINAL_READ, key=self._key)
        self._end, self._asked, self._position = None, 0, 0
        self._returned = Returned()
        return True

    def _finish(self, now: int, outcome: Outcome, error: int) -> None:
        assert self._read is not None
        self._polls.complete(self._read, self._returned, time_ns=now, outcome=outcome, error=error)
        self._read = None
        self._count += 1
        self._fetches.forget()
        self._agenda.ended(complete=outcome is Outcome.OK)

    def _ask_end(self, now: int, effects: Effects) -> None:
        leader = self._routes.leaders[self._key]
        if leader < 0 or (self._asked and now < self._asked_ns + _END_NS):
            self._routes.doubt(now)
            return
        self._asked, self._asked_ns = self._correlations.next(), now
        key = self._routes.keys[self._key]
        assert key is not None
        effects.append((SEND, leader, ListOffsetsRequest(self._asked, -1, ((key, -1, _LATEST),))))

    def _limited(self, message: ListOffsetsResponse) -> None:
        if message.correlation != self._asked or self._read is None or self._end is not None:
            return
        _, error, offset, _ = message.partitions[0]
        if error:
            self._asked_ns -= _END_NS - 10 * _LOOK_NS  # soon again
        else:
            self._end = offset

    def _take(self, now: int, message: FetchResponse) -> None:
        for found in self._fetches.take(now, message):
            if found.number != self._key or self._end is None:
                continue
            if found.out_of_range:
                self._until_ns = now  # its log ends before it should: begin again
            for batch in found.batches:
                skipped = self._position - batch.base_offset
                if 0 <= skipped < batch.count:
                    values = batch.payload[skipped:]
                    self._returned.add(self._key, self._position, values, self._count)
                    self._position = batch.base_offset + batch.count
