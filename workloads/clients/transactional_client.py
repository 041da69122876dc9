"""A transactional producer's view of a client library, and the severity of a library's errors.

Both libraries sort their errors alike (librdkafka's INTRODUCTION.md, "Transactional producer";
KafkaProducer's documentation): what may be called again, what leaves only an abort, and what leaves
only a new instance.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol


class Severity(Enum):
    """The possible reaction to an error."""

    RETRIABLE = auto()
    """The same call again."""
    ABORTABLE = auto()
    """Abort the transaction, then begin another."""
    FATAL = auto()
    """Nothing more can be done with this instance."""


class TransactionError(Exception):
    """A transactional call that failed."""

    def __init__(self, text: str, *, code: int, severity: Severity) -> None:
        super().__init__(text)
        self.code = code
        """The code of the error registry."""
        self.severity = severity


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A consumer group whose offsets are sent with transactions."""

    name: str
    metadata: object
    """The metadata as librdkafka's consumer hands it out for librdkafka's producer."""


class Transacts(Protocol):
    """A transactional producer of some library; each call raises TransactionError."""

    def init(self, timeout_s: float) -> None:
        """Get a producer id and epoch, which ends whatever an earlier instance left open."""

    def begin(self) -> None:
        """Begin a transaction, locally."""

    def send(self, topic: str, partition: int, payload: bytes, *, value: int) -> None:
        """Queue a record of the open transaction; its end is reported under its value."""

    def flush(self, timeout_s: float) -> None:
        """Wait until every record has an end. The first bad one is the error."""

    def send_offsets(
        self, offsets: Mapping[tuple[str, int], int], *, group: Group, timeout_s: float
    ) -> None:
        """Make it part of the transaction that this group reads on from there, by partition."""

    @property
    def offsets(self) -> Mapping[int, int]:
        """The offsets that were acknowledged since the transaction began, by value."""

    def commit(self, timeout_s: float) -> None:
        """Commit, and wait for the acknowledgement."""

    def abort(self, timeout_s: float) -> None:
        """Abort, and wait for the acknowledgement."""

    def close(self) -> None:
        """End every thread and connection, soon; what is in flight is given up."""
