"""Transactional producers: of librdkafka, and of Kafka's own Java client, of the JVM's release."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any, Final, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer, TopicPartition
from py4j.protocol import Py4JJavaError

from fencepost.workloads.clients.columns import offsets_of
from fencepost.workloads.clients.java_gateway import JavaVirtualMachine
from fencepost.workloads.clients.transactional_client import Group, Severity, TransactionError

_WAIT_S_MAX: Final = 0.1
"""The longest wait inside librdkafka: signals are seen after it."""
_CLOSE_S_MAX: Final = 5.0
_STUCK_S: Final = 2.0
"""The time after its time-out at which a call is taken for one that never ends."""
_TIMED_OUT: Final = KafkaError._MSG_TIMED_OUT  # noqa: SLF001  # the constant's name
# The documentation of KafkaProducer sorts them so: these leave `close` alone, a TimeoutException
# the same call again, and every other KafkaException an abort. Once the client is in its error
# state, the abort fails, too.
_FATAL: Final = frozenset(
    {
        "ProducerFencedException",
        "OutOfOrderSequenceException",
        "AuthorizationException",
        "TransactionalIdAuthorizationException",
        "ClusterAuthorizationException",
        "UnsupportedVersionException",
        "InvalidTxnStateException",
        "InvalidPidMappingException",
        "IllegalStateException",
    }
)
_RETRIABLE: Final = frozenset({"TimeoutException", "InterruptException"})


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
        self._reports: dict[int, Message] = {}
        """Of acknowledged records, by value, in the order in which they came."""
        self._failure: KafkaError | None = None

    @property
    def offsets(self) -> Mapping[int, int]:
        """The offsets that were acknowledged since the transaction began, by value."""
        offsets = offsets_of(tuple(self._reports.values())).tolist()
        return {
            value: offset
            for value, offset in zip(self._reports, offsets, strict=True)
            if offset >= 0
        }

    def init(self, timeout_s: float) -> None:
        """Get a producer id and epoch."""
        self._again(self._producer.init_transactions, timeout_s)

    def begin(self) -> None:
        """Begin a transaction, locally."""
        self._reports.clear()
        self._failure = None
        try:
            self._producer.begin_transaction()
        except KafkaException as exception:
            raise _error(exception.args[0]) from exception

    def send(self, topic: str, partition: int, payload: bytes, *, value: int) -> None:
        """Queue a record. A refusal leaves an abort, or its error says not."""

        def deliver(error: KafkaError | None, message: Message) -> None:
            self._in_flight -= 1
            if error is not None:
                self._failure = self._failure or error
            else:
                self._reports[value] = message

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


class JavaTransactions:
    """`Transacts` by a KafkaProducer."""

    def __init__(self, settings: Mapping[str, str], *, machine: JavaVirtualMachine) -> None:
        self._machine = machine
        self._kafka = machine.classes.org.apache.kafka
        self._duration = machine.classes.java.time.Duration
        producer = self._kafka.clients.producer
        self._record = producer.ProducerRecord
        self._producer = self._call(lambda: producer.KafkaProducer(machine.map_of(settings)))
        self._sent: dict[int, Any] = {}
        self._offsets: dict[int, int] = {}

    @property
    def offsets(self) -> Mapping[int, int]:
        """The offsets that were acknowledged since the transaction began, by value."""
        return dict(self._offsets)

    def init(self, timeout_s: float) -> None:
        """Get a producer id and epoch."""
        self._again(self._producer.initTransactions, timeout_s)

    def begin(self) -> None:
        """Begin a transaction, locally."""
        self._offsets.clear()
        self._sent.clear()
        self._call(self._producer.beginTransaction)

    def send(self, topic: str, partition: int, payload: bytes, *, value: int) -> None:
        """Queue a record."""
        self._sent[value] = self._call(
            lambda: self._producer.send(self._record(topic, partition, None, payload))
        )

    def flush(self, timeout_s: float) -> None:
        """Wait until every record has an end; only the delivery time-out bounds this."""
        del timeout_s
        self._call(self._producer.flush)
        for value in list(self._sent):
            # Not taken out of the list before its end is known: an abort has no use for it.
            metadata = self._call(self._sent[value].get)
            del self._sent[value]
            if metadata.hasOffset():
                self._offsets[value] = metadata.offset()

    def send_offsets(
        self, offsets: Mapping[tuple[str, int], int], *, group: Group, timeout_s: float
    ) -> None:
        """Make it part of the transaction that this group reads on from there."""
        positions = self._machine.map_of(
            {
                self._kafka.common.TopicPartition(*place): self._position(offset)
                for place, offset in offsets.items()
            }
        )
        of_group = self._kafka.clients.consumer.ConsumerGroupMetadata(group.name)
        self._again(lambda: self._producer.sendOffsetsToTransaction(positions, of_group), timeout_s)

    def commit(self, timeout_s: float) -> None:
        """Commit, and wait for the acknowledgement."""
        self._again(self._producer.commitTransaction, timeout_s)

    def abort(self, timeout_s: float) -> None:
        """Abort, and wait for the acknowledgement."""
        self._again(self._producer.abortTransaction, timeout_s)

    def close(self) -> None:
        """Disconnect; sends without an end by now are given up."""
        self._call(lambda: self._producer.close(self._duration.ofMillis(0)))

    def _position(self, offset: int) -> Any:
        return self._kafka.clients.consumer.OffsetAndMetadata(offset)

    def _again(self, call: Callable[[], object], timeout_s: float) -> None:
        """Call, and again after a time-out (`max.block.ms`) while there is time."""
        deadline_s = time.monotonic() + timeout_s
        while True:
            try:
                self._call(call)
            except TransactionError as error:
                if error.severity is not Severity.RETRIABLE or time.monotonic() >= deadline_s:
                    raise
            else:
                return

    def _call(self, call: Callable[[], Any]) -> Any:
        try:
            return call()
        except Py4JJavaError as error:
            raise self._error(error.java_exception) from error

    def _error(self, thrown: Any) -> TransactionError:
        """Return the error; its cause counts if it only says that something failed before."""
        chain = [thrown]
        while (cause := chain[-1].getCause()) is not None:
            chain.append(cause)
        names = [one.getClass().getSimpleName() for one in chain]
        errors = self._kafka.common.protocol.Errors
        codes = [errors.forException(one).code() for one in chain]
        if not _FATAL.isdisjoint(names):
            severity = Severity.FATAL
        elif names[0] in _RETRIABLE:
            severity = Severity.RETRIABLE
        else:
            severity = Severity.ABORTABLE
        # -1 is UNKNOWN_SERVER_ERROR, Kafka's code for an exception outside its protocol.
        code = next((one for one in codes if one != -1), -1)
        return TransactionError(str(thrown.toString()), code=code, severity=severity)
