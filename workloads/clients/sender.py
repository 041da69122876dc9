"""One logical producer: sends unique values at a steady rate, and records each send.

Pipelined and in batches. An invocation is recorded before its batch is built; ends are recorded
once a poll of librdkafka, after it came back, and with that one time. Sends that have no end when
the process does (killed, or out of time) stay open, which is info.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

import numpy as np
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from numpy.typing import NDArray

from fencepost.history.clock import Clock
from fencepost.history.operation import Outcome
from fencepost.workloads.clients.columns import SendEnds, ends_of, messages_of
from fencepost.workloads.clients.config import ProducerConfig
from fencepost.workloads.clients.places import places_of
from fencepost.workloads.clients.recording import RecordsSends
from fencepost.workloads.clients.shutdown import Ending
from fencepost.workloads.generators.keys import KeyCycle, by_key
from fencepost.workloads.generators.pace import Pace

_TICK_NS: Final = 10_000_000
"""100 wake-ups a second at most: at 500 records a second, 2-4 % of a core."""
_BACKLOG_S: Final = 1.0
"""The part of its schedule that a producer makes up for after it could not send."""
_WAIT_S_MAX: Final = 0.1
"""The longest wait inside librdkafka: signals are seen after it."""
_FATAL_DRAIN_S: Final = 5.0


class Produces(Protocol):
    """The part of librdkafka's producer that a sender uses."""

    def produce_batch(
        self,
        topic: str,
        messages: list[dict[str, Any]],
        partition: int,
        *,
        on_delivery: Callable[[KafkaError | None, Message], None],
    ) -> int:
        """Queue these for one partition; return how many were. The others get an `_error`."""

    def poll(self, timeout: float) -> int:
        """Report the sends that ended; wait for one if none did."""

    def purge(self) -> None:
        """Give up what is queued or in flight."""

    def close(self) -> object:
        """Wait until nothing is in flight, and end every thread and connection."""


class Sender:
    """One logical client: an instance of librdkafka and what it owes the recorder."""

    def __init__(
        self,
        config: ProducerConfig,
        *,
        generation: int,
        recorder: RecordsSends,
        clock: Clock,
        stopped: Callable[[], bool],
        connect: Callable[[dict[str, Any]], Produces] = Producer,
    ) -> None:
        common = config.common
        self._config = config
        self._stopped = stopped
        self._recorder = recorder
        self._clock = clock
        self._places = places_of(common.keys)
        seed = [common.seed, common.process_of(generation)]
        self._keys = KeyCycle(range(len(common.keys)), np.random.default_rng(seed))
        self._pace = Pace(
            rate=config.rate,
            backlog_max=max(config.batch_max, int(config.rate * _BACKLOG_S)),
            tick_ns=_TICK_NS,
            start_ns=clock.now_ns(),
        )
        self._in_flight = 0
        self._fatal = False
        self._reports: list[Message] = []
        self._producer = connect({**common.settings, "client.id": common.name(generation)})

    def run(self) -> Ending:
        """Send until told to stop, then wait for the ends of what is in flight, within a bound."""
        while not (self._fatal or self._stopped()):
            now_ns = self._clock.now_ns()
            room = self._config.in_flight_max - self._in_flight
            count = min(self._pace.due(now_ns), self._config.batch_max, room)
            if count > 0:
                self._send(count, now_ns)
            self._poll(self._wait_s())
        if self._fatal:
            self._drain(_FATAL_DRAIN_S)
            return Ending.FATAL
        self._drain(self._config.flush_ms / 1000)
        return Ending.STOPPED

    def close(self) -> None:
        """Disconnect. Sends without an end by now are given up, so that it takes no time."""
        self._producer.purge()
        # Closing polls a last time, and raises a fatal error that no poll has met yet.
        with suppress(KafkaException):
            self._producer.close()

    def _wait_s(self) -> float:
        if self._in_flight >= self._config.in_flight_max:
            return _WAIT_S_MAX
        if self._pace.rate == 0:
            return 0.0
        # librdkafka waits whole milliseconds, and not at all for less than one.
        wait_s = self._pace.wait_ns(self._clock.now_ns()) / 1e9
        return min(_WAIT_S_MAX, max(0.001, wait_s))

    def _send(self, count: int, now_ns: int) -> None:
        keys = self._keys.take(count)
        values = self._recorder.invoke(keys, time_ns=now_ns)
        self._pace.take(count, now_ns)
        for key, positions in by_key(keys):
            self._queue(key, values[positions])

    def _queue(self, key: int, values: NDArray[np.int64]) -> None:
        """Hand the records of one key to librdkafka, in their order; wait while its queue is full.

        A record that is refused for another reason was never queued and surely did not happen.
        """
        # `produce_batch` ignores a partition that stands in a message: one call a key.
        topic, partition = self._places[key]
        give_up_ns = self._clock.now_ns() + self._config.flush_ms * 1_000_000
        while True:
            messages = messages_of(values, value_bytes=self._config.value_bytes)
            queued = self._producer.produce_batch(
                topic, messages, partition=partition, on_delivery=self._on_delivery
            )
            self._in_flight += queued
            if queued == len(messages):
                return
            refused = [row for row, message in enumerate(messages) if "_error" in message]
            values, errors = values[refused], [_error_of(messages[row]) for row in refused]
            full = {KafkaError._QUEUE_FULL} == set(errors)  # noqa: SLF001  # the constant's name
            if not full or self._stopped() or self._clock.now_ns() >= give_up_ns:
                break
            # The queue was full from some record on, so what is left is still in order.
            self._poll(_WAIT_S_MAX)
        self._refuse(values, errors)

    def _refuse(self, values: NDArray[np.int64], errors: Sequence[int]) -> None:
        self._fatal |= KafkaError._FATAL in errors  # noqa: SLF001  # the constant's name
        self._complete(
            SendEnds(
                values=values,
                offsets=np.full(len(values), -1, dtype=np.int64),
                outcomes=np.full(len(values), Outcome.FAIL.code, dtype=np.uint8),
                errors=np.array(errors, dtype=np.int16),
            )
        )

    def _poll(self, timeout_s: float) -> None:
        try:
            self._producer.poll(timeout_s)
        except KafkaException as exception:
            # A fatal error is raised out of poll, whatever callback there is; the reports that
            # came before it count.
            if not _is_fatal(exception):
                raise
            self._fatal = True
        if not self._reports:
            return
        ends = ends_of(self._reports)
        self._in_flight -= len(self._reports)
        self._reports.clear()
        self._complete(ends)

    def _complete(self, ends: SendEnds) -> None:
        self._recorder.complete(
            ends.values,
            offsets=ends.offsets,
            outcomes=ends.outcomes,
            errors=ends.errors,
            time_ns=self._clock.now_ns(),
        )

    def _drain(self, timeout_s: float) -> None:
        deadline_ns = self._clock.now_ns() + int(timeout_s * 1e9)
        while self._in_flight and self._clock.now_ns() < deadline_ns:
            self._poll(_WAIT_S_MAX)

    def _on_delivery(self, _error: KafkaError | None, message: Message) -> None:
        # Called once a record: everything else is done once a poll.
        self._reports.append(message)


def _is_fatal(exception: KafkaException) -> bool:
    (error, *_) = exception.args
    return isinstance(error, KafkaError) and error.fatal()


def _error_of(message: dict[str, object]) -> int:
    error = message["_error"]
    assert isinstance(error, KafkaError)
    return error.code()
