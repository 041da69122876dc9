"""A transactional producer of librdkafka."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition

from workloads.clients.transactional_client import Group, Severity, TransactionError

__all__ = ["LibrdkafkaTransactions", "TransactionalProducer"]

_WAIT_S_MAX: Final = 0.1
"""The longest wait inside librdkafka: signals are seen after it."""
_CLOSE_S_MAX: Final = 5.0
_STUCK_S: Final = 2.0
"""The time after its time-out at which a call is taken for one that never ends."""
_TIMED_OUT: Final = KafkaError._MSG_TIMED_OUT  # noqa: SLF001  # the constant's name


class TransactionalProducer(Protocol):
    """The part of librdkafka's producer that is used."""

    def init_transactions(self, timeout: float) -> None:
        """Do as `confluent_kafka.Producer.init_transactions`; the other methods likewise."""

    def begin_transaction(self) -> None:
        """Do as `Producer.begin_transaction`."""

    def commit_transaction(self, timeout: float) -> None:
        """Do as `Producer.commit_transaction`."""

    def abort_transaction(self, timeout: float) -> None:
        """Do as `Producer.abort_transaction`."""

    def produce(
        self,
        topic: str,
        value: bytes,
        *,
        partition: int,
        on_delivery: Callable[[KafkaError | None, Message], None],
    ) -> None:
        """Do as `Producer.produce`."""

    def send_offsets_to_transaction(
        self, positions: list[TopicPartition], group_metadata: object, timeout: float
    ) -> None:
        """Do as `Producer.send_offsets_to_transaction`."""

    def poll(self, timeout: float) -> int:
        """Do as `Producer.poll`."""

    def purge(self) -> None:
        """Do as `Producer.purge`."""

    def close(self) -> object:
        """Do as `Producer.close`: abort an open transaction, and wait for that."""


class LibrdkafkaTransactions:
    """`Transacts` by librdkafka."""

    def __init__(
        self,
        settings: Mapping[str, str],
        *,
        connect: Callable[[dict[str, Any]], TransactionalProducer] = Producer,
        stuck_s: float = _STUCK_S,
    ) -> None:
        self._producer = connect(dict(settings))
        self._stuck_s = stuck_s
        self._in_flight = 0
        self._offsets: dict[int, int] = {}
        self._failure: KafkaError | None = None

    @property
    def offsets(self) -> Mapping[int, int]:
        """The offsets that were acknowledged since the transaction began, by value."""
        return dict(self._offsets)

    def init(self, timeout_s: float) -> None:
        """Get a producer id and epoch."""
        self._again(self._producer.init_transactions, timeout_s)

    def begin(self) -> None:
        """Begin a transaction, locally."""
        self._offsets.clear()
        self._failure = None
        try:
            self._producer.begin_transaction()
        except KafkaException as exception:
            raise _error(exception.args[0]) from exception

    def send(self, topic: str, partition: int, payload: bytes, *, value: int) -> None:
        """Queue a record. What is refused leaves an abort, or its error says that it does not."""

        def deliver(error: KafkaError | None, message: Message) -> None:
            self._in_flight -= 1
            if error is not None:
                self._failure = self._failure or error
            elif (offset := message.offset()) is not None:
                self._offsets[value] = offset

        try:
            self._producer.produce(topic, payload, partition=partition, on_delivery=deliver)
        except BufferError as error:
            code = KafkaError._QUEUE_FULL  # noqa: SLF001  # the constant's name
            raise TransactionError(str(error), code=code, severity=Severity.ABORTABLE) from error
        except KafkaException as exception:
            raise _error(exception.args[0]) from exception
        self._in_flight += 1

    def flush(self, timeout_s: float) -> None:
        """Wait until every record has an end."""
        deadline_s = time.monotonic() + timeout_s
        while self._in_flight and time.monotonic() < deadline_s:
            self._poll()
        if self._failure is not None:
            raise _error(self._failure)
        if self._in_flight:
            text = f"{self._in_flight} records have no end after {timeout_s:g} s"
            raise TransactionError(text, code=_TIMED_OUT, severity=Severity.ABORTABLE)

    def send_offsets(
        self, offsets: Mapping[tuple[str, int], int], *, group: Group, timeout_s: float
    ) -> None:
        """Make it part of the transaction that this group reads on from there.

        librdkafka may not come back from that call when the group's coordinator moves, whatever
        its time-out (its issue 5456). Such an instance is given up, which ends the transaction.
        """
        positions = [TopicPartition(*place, offset) for place, offset in offsets.items()]
        answers: SimpleQueue[TransactionError | None] = SimpleQueue()

        def send(left_s: float) -> None:
            self._producer.send_offsets_to_transaction(positions, group.metadata, left_s)

        def answer() -> None:
            try:
                self._again(send, timeout_s)
            except TransactionError as error:
                answers.put(error)
            else:
                answers.put(None)

        Thread(target=answer, daemon=True).start()
        try:
            failure = answers.get(timeout=timeout_s + self._stuck_s)
        except Empty:
            text = f"offsets were still being sent {self._stuck_s:g} s after their time-out"
            raise TransactionError(text, code=_TIMED_OUT, severity=Severity.FATAL) from None
        if failure is not None:
            raise failure

    def commit(self, timeout_s: float) -> None:
        """Commit, and wait for the acknowledgement."""
        self._again(self._producer.commit_transaction, timeout_s)

    def abort(self, timeout_s: float) -> None:
        """Abort, and wait for the acknowledgement; the abort ends the records without an end."""
        self._again(self._producer.abort_transaction, timeout_s)
        while self._in_flight and self._producer.poll(0):
            pass

    def close(self) -> None:
        """Disconnect; sends without an end by now are given up, an abort after a while."""
        closing = Thread(target=self._close, daemon=True)
        closing.start()
        closing.join(_CLOSE_S_MAX)

    def _close(self) -> None:
        with suppress(KafkaException):
            self._producer.purge()
            self._producer.close()

    def _poll(self) -> None:
        try:
            self._producer.poll(_WAIT_S_MAX)
        except KafkaException as exception:
            # A fatal error is raised out of poll.
            raise _error(exception.args[0]) from exception

    def _again(self, call: Callable[[float], None], timeout_s: float) -> None:
        """Call, and again while the error says that this may help and there is time."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                return call(max(0.001, deadline_s - time.monotonic()))
            except KafkaException as exception:
                error = _error(exception.args[0])
                over = time.monotonic() >= deadline_s
                if error.severity is not Severity.RETRIABLE or over:
                    raise error from exception


def _error(error: KafkaError) -> TransactionError:
    """Return the error; any that librdkafka does not sort leaves an abort, if it is not too late.

    If even an abort is too late, librdkafka says so. A produce call, for one, is refused with a
    plain _STATE after an error that it has not told.
    """
    if error.fatal():
        severity = Severity.FATAL
    elif error.retriable():
        severity = Severity.RETRIABLE
    else:
        severity = Severity.ABORTABLE
    return TransactionError(error.str(), code=error.code(), severity=severity)
