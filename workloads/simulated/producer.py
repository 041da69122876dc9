"""A simulated producer: unique values to every key at a steady rate, as one node of the world.

It gathers records for a while and then sends each partition's as a batch. Every key has a *lane*: a
producer id, sequences and one batch under way of its own, so that a key without a leader holds up
no other. A batch that gets no answer, or an error that may pass, is sent again under its sequence;
one that is older than the message time-out is given up, and its lane goes on under a new id, since
the fate of its sequence is unknown.
"""

from collections.abc import Sequence
from random import Random
from typing import Any, Final

from fencepost.clusters.node_port.effects import NOTE, SEND, START, TICK, UNREACHABLE, Effects
from fencepost.clusters.node_port.notes import ACKNOWLEDGED
from fencepost.clusters.node_port.storage import Batch
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.client import MetadataResponse
from fencepost.clusters.reference.nodes.messages.data import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
)
from fencepost.clusters.simulation.network import RECONNECT
from fencepost.clusters.simulation.world import WAKE
from fencepost.history.errors import ATTEMPTS_UNBOUNDED, outcome_of
from fencepost.history.operation import Outcome
from fencepost.workloads.simulated.payload import Payload
from fencepost.workloads.simulated.routes import Correlations, Routes
from fencepost.workloads.simulated.sends import BatchEnd, PartitionQueue, ProducerPlan, Sends

_MS: Final = 1_000_000
_TICK_NS: Final = 50 * _MS
"""The time for which it gathers. A real producer waits 5 ms: a tenth of the events is worth ten
times the time, and the outcome of a batch holds for all of its records.
"""
_REQUEST_NS: Final = 6_000 * _MS
"""An answer that did not come by then will not come."""
_ACKS_NS: Final = 5_000 * _MS
_RETRY_NS: Final = 100 * _MS
_BACKLOG_S: Final = 1.0
_ENDS: Final = 1024
"""Batches whose ends are recorded together."""
_UNLIMITED_RATE: Final = 5_000.0
"""The rate of a producer that is to send as fast as it can: in virtual time that has no other
meaning.
"""
_ALL: Final = -1
_TIMED_OUT: Final = -192
"""librdkafka's code for a message that got no answer in time."""
_REFRESHING: Final = frozenset(
    {
        Error.NOT_LEADER_OR_FOLLOWER,
        Error.UNKNOWN_TOPIC_OR_PARTITION,
        Error.UNKNOWN_TOPIC_ID,
        Error.FENCED_LEADER_EPOCH,
        Error.UNKNOWN_LEADER_EPOCH,
    }
)
_PASSING: Final = _REFRESHING | {
    Error.REQUEST_TIMED_OUT,
    Error.NOT_ENOUGH_REPLICAS,
    Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    Error.BROKER_NOT_AVAILABLE,
    Error.COORDINATOR_LOAD_IN_PROGRESS,
}
"""Errors after which the batch is sent again."""
_DUPLICATE: Final = int(Error.DUPLICATE_SEQUENCE_NUMBER)


class SimulatedProducer:
    """One logical client. `stop` has it send no more; it is `idle` once all has ended."""

    def __init__(self, plan: ProducerPlan, sends: Sends) -> None:
        self._plan = plan
        self._sends = sends
        self._acks = {"all": _ALL, "1": 1, "0": 0}[plan.acks]
        self._rate = plan.rate or _UNLIMITED_RATE
        self._correlations = Correlations()
        self._routes = Routes(
            plan.places,
            brokers=plan.brokers,
            correlations=self._correlations,
            first=plan.process,
        )
        self._lanes = [PartitionQueue(number) for number in range(len(plan.places))]
        self._requests: dict[int, tuple[int, list[PartitionQueue], int]] = {}
        """When a produce request was sent, its lanes and the broker, by correlation."""
        self._asking: dict[int, tuple[int, PartitionQueue, int]] = {}
        """Since when a lane asks for a producer id, the lane and the broker, by correlation."""
        self._draw = Random(f"{plan.seed}/{plan.process}")  # noqa: S311  # to be repeated
        self._begin_ns: int | None = None
        self._taken = 0
        self._ends: list[BatchEnd] = []
        self._stopping = False
        self.open_count = 0
        self.invoked_count = 0
        self.ok_count = self.fail_count = self.info_count = 0

    @property
    def idle(self) -> bool:
        """Return whether every send has ended, and is recorded."""
        return not self.open_count and not self._ends

    def stop(self) -> None:
        """Send nothing new."""
        self._stopping = True

    def give_up(self) -> None:
        """Record what has ended; the rest stays open."""
        self._record()
        self._sends.close()

    def handle(self, now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take an event of the world."""
        if kind == ProduceResponse.kind:
            self._answered(now, message, effects)
        elif kind in (TICK, START):
            self._tick(now, effects)
        elif kind == MetadataResponse.kind:
            self._routes.take(message)
        elif kind == InitProducerIdResponse.kind:
            self._given_id(now, message)
        elif kind == UNREACHABLE:
            self._unreachable(now, message)

    def _tick(self, now: int, effects: Effects) -> None:
        if self._begin_ns is None:
            self._begin_ns = now
        self._give_up_late(now, effects)
        self._routes.tick(now, effects)
        if not self._stopping:
            self._gather(now)
        self._send(now, effects)
        if self._stopping or len(self._ends) >= _ENDS:
            self._record()
        effects.append((WAKE, now + _TICK_NS))

    def _record(self) -> None:
        if self._ends:
            self._sends.complete(self._ends)
            self._ends = []

    def _gather(self, now: int) -> None:
        assert self._begin_ns is not None
        scheduled = 1 + int((now - self._begin_ns) * self._rate / 1e9)
        backlog = max(self._plan.batch_max, int(self._rate * _BACKLOG_S))
        self._taken = max(self._taken, scheduled - backlog)
        room = self._plan.in_flight_max - self.open_count
        count = min(scheduled - self._taken, self._plan.batch_max, room)
        if count <= 0:
            return
        self._taken += count
        self.open_count += count
        self.invoked_count += count
        # From a lane on that the seed draws: each key as often as any other, but one.
        stride = len(self._lanes)
        start = int(self._draw.random() * stride)
        first = self._sends.invoke(start, count, time_ns=now)
        in_turn = self._lanes[start:] + self._lanes[:start]
        for place, lane in enumerate(in_turn[:count]):
            values = range(first + place, first + count, stride)
            lane.queue.append((now, Payload.of(values, now)))

    def _send(self, now: int, effects: Effects) -> None:
        """Send each leader a request with the lanes' batches; a lane that is alone gets its own."""
        leaders = self._routes.leaders
        together: dict[int, list[PartitionQueue]] = {}
        for lane in self._lanes:
            if lane.correlation or now < lane.due_ns or not self._is_loaded(lane, now, effects):
                continue
            leader = leaders[lane.number]
            if leader < 0:
                self._routes.doubt(now)
            elif lane.alone:
                self._request(now, leader, [lane], effects)
            else:
                together.setdefault(leader, []).append(lane)
        for leader, lanes in together.items():
            self._request(now, leader, lanes, effects)

    def _is_loaded(self, lane: PartitionQueue, now: int, effects: Effects) -> bool:
        """Return whether the lane has a batch to send, made of what waits if there was none."""
        if lane.sending is not None:
            return True
        if not lane.queue:
            return False
        if self._plan.idempotence and lane.producer_id < 0:
            self._ask_id(lane, now, effects)
            return False
        lane.call_ns, lane.values = self._next_batch(lane)
        sequence = lane.sequence if self._plan.idempotence else -1
        lane.sending = Batch(
            -1,
            -1,
            len(lane.values),
            lane.producer_id,
            lane.producer_epoch,
            sequence,
            lane.values,
        )
        lane.sequence += len(lane.values)
        return True

    def _next_batch(self, lane: PartitionQueue) -> tuple[int, Sequence[int]]:
        """Return what waits, up to the size of a batch: after a stall, several ticks' values."""
        queue = lane.queue
        call_ns, values = queue.popleft()
        if not queue or len(values) + len(queue[0][1]) > self._plan.batch_max:
            return call_ns, values
        joined = list(values)
        while queue and len(joined) + len(queue[0][1]) <= self._plan.batch_max:
            joined += queue.popleft()[1]
        return call_ns, Payload.of(joined, call_ns)

    def _request(
        self, now: int, leader: int, lanes: list[PartitionQueue], effects: Effects
    ) -> None:
        keys = self._routes.keys
        partitions = tuple((keys[lane.number], lane.sending) for lane in lanes)
        # A request without acks has no answer to wait for.
        correlation = self._correlations.next() if self._acks else -1
        message = ProduceRequest(correlation, self._acks, _ACKS_NS, partitions)  # type: ignore[arg-type]  # a lane that is loaded has both
        effects.append((SEND, leader, message))
        if not self._acks:
            for lane in lanes:
                self._end(lane, now, base_offset=-1, outcome=Outcome.OK, error=0)
            return
        self._requests[correlation] = (now, lanes, leader)
        for lane in lanes:
            lane.correlation, lane.sent_ns = correlation, now

    def _ask_id(self, lane: PartitionQueue, now: int, effects: Effects) -> None:
        brokers = self._plan.brokers
        correlation = self._correlations.next()
        broker = brokers[correlation % len(brokers)]
        self._asking[correlation] = (now, lane, broker)
        lane.correlation = correlation
        effects.append((SEND, broker, InitProducerIdRequest(correlation)))

    def _given_id(self, now: int, message: InitProducerIdResponse) -> None:
        found = self._asking.pop(message.correlation, None)
        if found is None:
            return
        lane = found[1]
        lane.correlation = 0
        if message.error:
            lane.due_ns = now + _RETRY_NS
            return
        lane.producer_id, lane.producer_epoch = message.producer_id, message.producer_epoch
        lane.sequence = 0

    def _answered(self, now: int, message: ProduceResponse, effects: Effects) -> None:
        found = self._requests.pop(message.correlation, None)
        if found is None:
            return  # given up: what it says came too late
        keys = self._routes.keys
        lanes = {keys[lane.number]: lane for lane in found[1]}
        for key, error, base_offset in message.partitions:
            lane = lanes.pop(key, None)
            if lane is None:
                continue
            lane.correlation = 0
            if not error:
                self._acknowledged(lane, now, base_offset, effects)
            else:
                self._refused(lane, now, error)
        for lane in lanes.values():
            self._try_again(lane, now)

    def _acknowledged(
        self, lane: PartitionQueue, now: int, base_offset: int, effects: Effects
    ) -> None:
        lane.alone = False
        if self._plan.noted and self._acks == _ALL:
            effects.append(
                (NOTE, ACKNOWLEDGED, self._routes.keys[lane.number], base_offset, lane.sending)
            )
        self._end(lane, now, base_offset=base_offset, outcome=Outcome.OK, error=0)

    def _refused(self, lane: PartitionQueue, now: int, error: int) -> None:
        if error in _REFRESHING:
            self._routes.doubt(now)
        if error in _PASSING:
            self._try_again(lane, now)
        elif error == _DUPLICATE:
            self._end(lane, now, base_offset=-1, outcome=Outcome.OK, error=0)
        else:
            outcome = outcome_of(error, attempts_max=ATTEMPTS_UNBOUNDED)
            self._end(lane, now, base_offset=-1, outcome=outcome, error=error)
            self._forget_id(lane)

    def _try_again(self, lane: PartitionQueue, now: int) -> None:
        lane.correlation = 0
        lane.alone = True
        lane.due_ns = now + _RETRY_NS

    def _unreachable(self, now: int, message: Any) -> None:
        correlation = message.correlation
        self._routes.unreachable(correlation)
        self._routes.doubt(now)
        self._give_up_request(correlation, now)

    def _give_up_request(self, correlation: int, now: int) -> None:
        found = self._requests.pop(correlation, None)
        lanes = found[1] if found is not None else []
        asking = self._asking.pop(correlation, None)
        for lane in (*lanes, *([asking[1]] if asking is not None else ())):
            self._try_again(lane, now)

    def _give_up_late(self, now: int, effects: Effects) -> None:
        open_ = (*self._requests.items(), *self._asking.items())
        late = [(number, to) for number, (sent, _, to) in open_ if now - sent > _REQUEST_NS]
        for correlation, broker in late:
            effects.append((RECONNECT, broker))
            self._routes.doubt(now)
            self._give_up_request(correlation, now)
        before = now - self._plan.message_timeout_ns
        for lane in self._lanes:
            while lane.queue and lane.queue[0][0] < before:
                _, values = lane.queue.popleft()
                self._note_end(BatchEnd(values, -1, Outcome.INFO, _TIMED_OUT, now))
            if lane.sending is not None and lane.call_ns < before:
                self._end(lane, now, base_offset=-1, outcome=Outcome.INFO, error=_TIMED_OUT)
                self._forget_id(lane)

    def _forget_id(self, lane: PartitionQueue) -> None:
        lane.producer_id, lane.alone = -1, True

    def _end(
        self, lane: PartitionQueue, now: int, *, base_offset: int, outcome: Outcome, error: int
    ) -> None:
        if lane.correlation:
            found = self._requests.get(lane.correlation)
            if found is not None:
                found[1].remove(lane)
        self._note_end(BatchEnd(lane.values, base_offset, outcome, error, now))
        lane.sending, lane.correlation = None, 0

    def _note_end(self, end: BatchEnd) -> None:
        count = len(end.values)
        self.open_count -= count
        if end.outcome is Outcome.OK:
            self.ok_count += count
        elif end.outcome is Outcome.FAIL:
            self.fail_count += count
        else:
            self.info_count += count
        self._ends.append(end)
