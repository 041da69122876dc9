"""A transactional producer of Kafka's own Java client, of whichever release the JVM has."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from py4j.protocol import Py4JJavaError

from workloads.clients.java_gateway import JavaVirtualMachine
from workloads.clients.transactional_client import Group, Severity, TransactionError

__all__ = ["JavaTransactions"]

# As the documentation of KafkaProducer sorts them: these leave `close` alone, a TimeoutException
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
