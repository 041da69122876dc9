"""A consumer process: polls, and records each poll with all that it returned.

A consumer gets its keys in one of two ways. *Assign*: every key without a group, and anew from time
to time, going back over some records it has read. *Subscribe*: the keys that the group assigns;
offsets are committed only once the records before them are on disk, so that a consumer that is
killed leaves no record unread.

One instance of librdkafka is one logical client, with one poll open at a time. When an instance
fails for good, a new one goes on under a new process number.
"""

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Thread
from typing import Any, Final

import numpy as np
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaException,
    Message,
    TopicPartition,
)
from numpy.typing import NDArray

from fencepost.history.errors import ATTEMPTS_UNBOUNDED, outcome_of
from fencepost.history.operation import Outcome
from fencepost.history.poll_recorder import PollRecorder
from fencepost.workloads.clients.columns import KafkaErrorLike, polled_of
from fencepost.workloads.clients.config import ConsumerConfig, read_config
from fencepost.workloads.clients.places import key_indices, places_of
from fencepost.workloads.clients.recording import RecordsPolls
from fencepost.workloads.clients.sessions import ConsumerSessions
from fencepost.workloads.clients.shutdown import pause, stop_on_sigterm
from fencepost.workloads.reading import POLL_RECORDS_MAX

_GROUP: Final = "fencepost"
_POLL_TIMEOUT_S: Final = 0.1
"""librdkafka gathers for this long or until it has the most records it may return. So there are ten
polls a second of an idle consumer, which is what an empty one costs on disk and in CPU."""
_COMMIT_NS: Final = 1_000_000_000
_CATCH_UP_NS: Final = 2_000_000_000
_CLOSE_S_MAX: Final = 5.0
GENERATIONS_MAX: Final = 50
"""Logical clients of one process. With more fatal errors than that it is no workload any more."""
_GENERATION_GAP_S: Final = 0.5
Connect = Callable[[dict[str, Any]], Any]
"""A function from settings to a `Consumer`, or to an object with the methods that are needed."""
_LOOK_BACK_MAX: Final = 10_000
"""Records of all keys together. Records that are read twice are recorded twice: this bounds the
price."""


class Poller:
    """One logical client: an instance of librdkafka, its keys and its recorder."""

    def __init__(
        self,
        config: ConsumerConfig,
        *,
        generation: int,
        recorder: RecordsPolls,
        connect: Connect = Consumer,
    ) -> None:
        common = config.common
        self._config = config
        self._clock = common.clock
        self._places = places_of(common.keys)
        self._key_of = key_indices(common.keys)
        self._sessions = ConsumerSessions(len(common.keys))
        self._reassign = Rereads(
            mean_s=config.reassign_s,
            key_count=len(common.keys),
            rng=np.random.default_rng([common.seed, common.process_of(generation)]),
            now_ns=self._clock.now_ns(),
        )
        self._commit_at_ns = 0
        self._failed = False
        self._recorder = recorder
        self._consumer = connect(
            {**common.settings, "client.id": common.name(generation), "group.id": _GROUP}
        )

    def run(self, stopped: Callable[[], bool]) -> bool:
        """Poll until told to stop (return True), or until the instance has failed for good."""
        if self._config.subscribe:
            self._subscribe()
        else:
            self._assign([OFFSET_BEGINNING] * len(self._places))
        while not (self._failed or stopped()):
            if not self._config.subscribe and self._reassign.is_due(self._clock.now_ns()):
                self._assign(self._reassign.offsets(self._clock.now_ns()))
            self._poll()
            if self._config.subscribe:
                self._commit()
        self._catch_up()
        return not self._failed

    def _catch_up(self) -> None:
        """Poll on until a poll returns nothing, within a bound: the last sends count as well."""
        deadline_ns = self._clock.now_ns() + _CATCH_UP_NS
        while not self._failed and self._clock.now_ns() < deadline_ns:
            if self._poll() == 0:
                return

    def _poll(self) -> int:
        """Poll once and record it; return the number of records."""
        self._sessions.begin_poll()
        sequence = self._recorder.invoke(time_ns=self._clock.now_ns())
        # From here to `complete` nothing of ours may raise: what was polled would be lost.
        messages, errors = self._consume()
        polled = polled_of(messages, key_of=self._key_of)
        errors = (*errors, *polled.errors)
        self._recorder.complete(
            sequence,
            time_ns=self._clock.now_ns(),
            keys=polled.keys,
            offsets=polled.offsets,
            values=polled.values,
            sessions=self._sessions.end_poll(polled.keys, polled.offsets),
            outcome=poll_outcome(errors, returned=len(polled.keys) > 0),
            error=errors[0].code() if errors else 0,
        )
        self._reassign.read(polled.keys, polled.offsets)
        if errors:
            self._sessions.sever()
            self._failed |= any(error.fatal() for error in errors)
            time.sleep(_POLL_TIMEOUT_S)  # an error that comes at once would be recorded endlessly
        return len(polled.keys)

    def _consume(self) -> tuple[list[Message], tuple[KafkaErrorLike, ...]]:
        # confluent-kafka raises a fatal error, and drops what the poll had gathered: info, then.
        try:
            return self._consumer.consume(POLL_RECORDS_MAX, _POLL_TIMEOUT_S), ()
        except KafkaException as exception:
            return [], (exception.args[0],)

    def _assign(self, offsets: Sequence[int]) -> None:
        self._consumer.assign(
            [
                TopicPartition(topic, partition, offset)
                for (topic, partition), offset in zip(self._places, offsets, strict=True)
            ]
        )
        self._sessions.gain(range(len(self._places)))

    def _subscribe(self) -> None:
        self._consumer.subscribe(
            sorted({topic for topic, _ in self._places}),
            on_assign=lambda _, given: self._sessions.gain(self._indices(given)),
            on_revoke=lambda _, taken: self._sessions.lose(self._indices(taken)),
        )

    def _indices(self, partitions: Sequence[TopicPartition]) -> list[int]:
        return [self._key_of[place.topic, place.partition] for place in partitions]

    def _commit(self) -> None:
        """Commit the offsets of the last poll and those before it, at most once a second."""
        now_ns = self._clock.now_ns()
        if now_ns < self._commit_at_ns or not self._sessions.owned:
            return
        self._commit_at_ns = now_ns + _COMMIT_NS
        try:
            self._consumer.commit(asynchronous=True)
        except KafkaException as exception:
            # Nothing new to commit, or no coordinator: the records are read again at worst.
            if exception.args[0].fatal():
                self._failed = True

    def close(self) -> None:
        """Leave the group if that is possible at once; what counts is on disk already."""
        closing = Thread(target=self._consumer.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_S_MAX)


def main(argv: Sequence[str]) -> int:
    """Consume as configured; return 0 when told to stop, 1 when every instance failed."""
    config = read_config(Path(argv[1]), ConsumerConfig)
    if consume(config, stop_on_sigterm()):
        return 0
    print(f"gave up after {GENERATIONS_MAX} fatal errors", file=sys.stderr)  # noqa: T201  # its log
    return 1


def consume(
    config: ConsumerConfig,
    stopped: Callable[[], bool],
    *,
    connect: Connect = Consumer,
) -> bool:
    """Poll and record, one logical client after the other, until told to stop.

    False if every one of a bounded number of instances failed for good.
    """
    for generation in range(GENERATIONS_MAX):
        recorder = PollRecorder(
            Path(config.common.raw),
            client=config.common.name(generation),
            process=config.common.process_of(generation),
            keys=config.common.keys,
        )
        poller = Poller(config, generation=generation, recorder=recorder, connect=connect)
        told_to = poller.run(stopped)
        recorder.close()
        poller.close()
        if told_to:
            return True
        pause(_GENERATION_GAP_S, stopped)
    return False


def poll_outcome(errors: Sequence[KafkaErrorLike], *, returned: bool) -> Outcome:
    """Return the outcome of a poll; an error is info at least if records came with it."""
    if not errors:
        return Outcome.OK
    outcome = outcome_of(errors[0].code(), attempts_max=ATTEMPTS_UNBOUNDED)
    return Outcome.INFO if returned and outcome is Outcome.FAIL else outcome


class Rereads:
    """The times at which one consumer assigns its keys anew, and the offsets: back over its reads.

    A log that was cut and written again below a reader's position looks whole to a reader that only
    goes forward. One that goes back sees that records that it was shown did not stay. Times are in
    ns of any one clock.
    """

    def __init__(
        self, *, mean_s: float, key_count: int, rng: np.random.Generator, now_ns: int
    ) -> None:
        self._mean_s = mean_s
        self._rng = rng
        # The next offset of each key; 0 before anything was read, which is the beginning.
        self._next: NDArray[np.int64] = np.zeros(key_count, dtype=np.int64)
        self._at_ns = now_ns + self._interval_ns()

    def read(self, keys: NDArray[np.int32], offsets: NDArray[np.int64]) -> None:
        """Take note that these records were read."""
        np.maximum.at(self._next, keys, offsets + 1)

    def is_due(self, now_ns: int) -> bool:
        """Return whether a new assignment is due."""
        return self._mean_s > 0 and now_ns >= self._at_ns

    def offsets(self, now_ns: int) -> list[int]:
        """Return the offset at which to start each key now; draw the next time."""
        self._at_ns = now_ns + self._interval_ns()
        back_max = _LOOK_BACK_MAX // len(self._next)
        back = self._rng.integers(0, back_max, size=len(self._next), endpoint=True)
        starts: list[int] = np.maximum(self._next - back, 0).tolist()
        return starts

    def _interval_ns(self) -> int:
        return int(self._rng.exponential(self._mean_s) * 1e9) + 1_000_000_000


if __name__ == "__main__":
    sys.exit(main(sys.argv))
