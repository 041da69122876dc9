"""A final reader: reads keys from their first to their last offset, when all has healed.

Each read is one operation. It asks the leader for the end of the log first (the high watermark: no
client writes any more, so that is the whole log), and is ok only if it got there. A read that did
not, in its share of the time, is info; the key is read again, from the start, while there is time.

The exit code is always 0; the result file lists the keys that were read completely.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from numpy.typing import NDArray

from fencepost.history.errors import name_of
from fencepost.history.operation import F, Outcome
from fencepost.history.poll_recorder import PollRecorder
from fencepost.workloads.clients.columns import polled_of
from fencepost.workloads.clients.config import FinalReaderConfig, read_config
from fencepost.workloads.clients.places import key_indices, places_of
from fencepost.workloads.clients.recording import RecordsPolls
from fencepost.workloads.clients.shutdown import stop_on_sigterm
from fencepost.workloads.generators.agenda import Agenda

_POLL_RECORDS_MAX: Final = 10_000
_POLL_TIMEOUT_S: Final = 0.1
_END_TIMEOUT_S: Final = 3.0
"""The time-out of one question for the end of a log; it is asked again while there is time."""
_RETRY_S: Final = 0.2
_EOF: Final = KafkaError._PARTITION_EOF  # noqa: SLF001  # the constant's name
_TIMED_OUT: Final = KafkaError._TIMED_OUT  # noqa: SLF001  # the constant's name


class FinalReader:
    """One logical client, with one read open at a time."""

    def __init__(
        self,
        config: FinalReaderConfig,
        *,
        recorder: RecordsPolls,
        connect: Callable[[dict[str, Any]], Consumer] = Consumer,
    ) -> None:
        common = config.common
        self._clock = common.clock
        self._keys = common.keys
        self._places = places_of(common.keys)
        self._key_of = key_indices(common.keys)
        self._read_count = 0
        self._recorder = recorder
        # No group is joined: the id only satisfies librdkafka.
        self._consumer = connect(
            {**common.settings, "client.id": common.client, "group.id": common.client}
        )

    def run(self, agenda: Agenda, stopped: Callable[[], bool]) -> None:
        """Read what is on the agenda while there is time."""
        while not stopped() and (following := agenda.next(self._clock.now_ns())) is not None:
            agenda.ended(complete=self._read(*following))

    def _read(self, key: int, until_ns: int) -> bool:
        sequence = self._recorder.invoke(time_ns=self._clock.now_ns(), f=F.FINAL_READ, key=key)
        error = self._read_to_end(sequence, key, until_ns)
        self._recorder.complete(
            sequence,
            time_ns=self._clock.now_ns(),
            keys=_NO_KEYS,
            offsets=_NO_NUMBERS,
            values=_NO_NUMBERS,
            sessions=_NO_KEYS,
            outcome=Outcome.INFO if error else Outcome.OK,
            error=error,
        )
        self._read_count += 1
        if error:
            _say(f"{self._keys[key]} was not read to its end: {name_of(error)}")
        return not error

    def _read_to_end(self, sequence: int, key: int, until_ns: int) -> int:
        """Record the key's records as they come; return the error before its end, or 0."""
        limits = self._limits(key, until_ns)
        if limits is None:
            return _TIMED_OUT
        offset, end = limits
        self._consumer.assign([TopicPartition(*self._places[key], offset)])
        while offset < end:
            if self._clock.now_ns() >= until_ns:
                return _TIMED_OUT
            # No more than are left: librdkafka would wait for the rest.
            wanted = min(_POLL_RECORDS_MAX, end - offset)
            try:
                messages = self._consumer.consume(wanted, _POLL_TIMEOUT_S)
            except KafkaException as exception:
                return int(exception.args[0].code())
            offset = max(offset, self._record(sequence, key, messages))
            if error := _first_error(messages):
                return error
        self._consumer.unassign()
        return 0

    def _record(self, sequence: int, key: int, messages: Sequence[Message]) -> int:
        """Record the records among these; return the offset after the last."""
        polled = polled_of(messages, key_of=self._key_of)
        assert (polled.keys == key).all(), f"records of {polled.keys} in a read of {key}"
        self._recorder.append(
            sequence,
            keys=polled.keys,
            offsets=polled.offsets,
            values=polled.values,
            sessions=np.full(len(polled.keys), self._read_count, dtype=np.int32),
        )
        # The end of a log may hold no records: then only this event says that it is reached.
        ends = [message.offset() or 0 for message in messages if _code(message) == _EOF]
        return max([*ends, *(polled.offsets[-1:] + 1).tolist()], default=0)

    def _limits(self, key: int, until_ns: int) -> tuple[int, int] | None:
        """Return first and end offset as the leader states them; None if it did not in time."""
        place = TopicPartition(*self._places[key])
        while self._clock.now_ns() < until_ns:
            try:
                found = self._consumer.get_watermark_offsets(
                    place, self._patience_s(until_ns), cached=False
                )
            except KafkaException as exception:
                _say(f"the end of {self._keys[key]} is not known yet: {exception.args[0]}")
                found = None
            if found is not None:
                return found
            time.sleep(_RETRY_S)
        return None

    def _patience_s(self, until_ns: int) -> float:
        return min(_END_TIMEOUT_S, max(0.0, (until_ns - self._clock.now_ns()) / 1e9))


def main(argv: Sequence[str]) -> int:
    """Read as the configuration says; always return 0."""
    config = read_config(Path(argv[1]), FinalReaderConfig)
    stopped = stop_on_sigterm()
    agenda = Agenda(config.share, deadline_ns=config.deadline_ns)
    recorder = PollRecorder(
        Path(config.common.raw),
        client=config.common.client,
        process=config.common.process,
        keys=config.common.keys,
    )
    FinalReader(config, recorder=recorder).run(agenda, stopped)
    recorder.close()
    complete = [config.common.keys[key] for key in agenda.done]
    Path(config.result).write_text(json.dumps({"complete": complete}) + "\n")
    return 0


_NO_KEYS: Final[NDArray[np.int32]] = np.empty(0, dtype=np.int32)
_NO_NUMBERS: Final[NDArray[np.int64]] = np.empty(0, dtype=np.int64)


def _first_error(messages: Sequence[Message]) -> int:
    codes = (_code(message) for message in messages)
    return next((code for code in codes if code not in (0, _EOF)), 0)


def _code(message: Message) -> int:
    error = message.error()
    return 0 if error is None else error.code()


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201  # the client's log


if __name__ == "__main__":
    sys.exit(main(sys.argv))
