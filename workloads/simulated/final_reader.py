"""A simulated final reader: reads keys from their first to their last offset, all having healed.

Each read is one operation. It asks the leader for the end of the log first, and is ok only if it
got there; one that does not in its share of the time is info, and the key is read again.
"""

from collections.abc import Sequence
from typing import Any, Final

from clusters.node_port.effects import SEND, START, TICK, UNREACHABLE, Effects
from clusters.reference.nodes.messages.client import MetadataResponse
from clusters.reference.nodes.messages.data import (
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from clusters.simulation.world import WAKE
from history.operation import F, Outcome
from workloads.generators.agenda import Agenda
from workloads.simulated.fetching import Fetches
from workloads.simulated.polls import Polls, Returned
from workloads.simulated.routes import Correlations, Routes

__all__ = ["SimulatedReader"]

_LOOK_NS: Final = 20_000_000
_END_NS: Final = 3_000_000_000
"""The time-out of one question for the end of a log."""
_LATEST: Final = -1
_TIMED_OUT: Final = -185
"""librdkafka's code for a request that got no answer in time."""


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
        self._fetches = Fetches(self._routes, self._correlations)
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
