"""Records between librdkafka and the recorder: bytes and message objects here, columns there.

A record's value is 8 bytes, little-endian int64, and padding. Nothing is done a record that can be
done a batch: what is left a record is one list element each.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from fencepost.history.errors import ATTEMPTS_UNBOUNDED, outcome_of
from fencepost.history.operation import Outcome
from fencepost.workloads.values import VALUE_BYTES_MIN

FOREIGN_VALUE: Final = -1
"""Stands for a record that is too short to be one of ours; no send ever has this value."""
_VALUE: Final = np.dtype("<i8")
_OK: Final = Outcome.OK.code


class KafkaErrorLike(Protocol):
    """The part of a librdkafka error that is read."""

    def code(self) -> int:
        """Return Kafka's code, or librdkafka's own, negative one."""

    def fatal(self) -> bool:
        """Return whether the error is fatal: the client instance cannot go on."""


class MessageLike(Protocol):
    """The part of a librdkafka message that is read."""

    def topic(self) -> str | None:
        """Return its topic."""

    def partition(self) -> int | None:
        """Return its partition."""

    def offset(self) -> int | None:
        """Return its offset; None or negative where librdkafka does not know it."""

    def value(self) -> bytes | None:
        """Return its payload; of an error event, a text."""

    def error(self) -> KafkaErrorLike | None:
        """Return the error; None for a record that was sent or read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendEnds:
    """The ends of sends, one row a send: the columns of `SendRecorder.complete`."""

    values: NDArray[np.int64]
    offsets: NDArray[np.int64]
    outcomes: NDArray[np.uint8]
    errors: NDArray[np.int16]


@dataclass(frozen=True, slots=True, kw_only=True)
class Polled:
    """The result of a poll: records in their order, and the error events between them."""

    keys: NDArray[np.int32]
    offsets: NDArray[np.int64]
    values: NDArray[np.int64]
    errors: tuple[KafkaErrorLike, ...] = ()


def messages_of(values: NDArray[np.int64], *, value_bytes: int) -> list[dict[str, object]]:
    """Return the records to send, as `produce_batch` takes them."""
    padded = np.zeros((len(values), value_bytes), dtype=np.uint8)
    padded[:, :VALUE_BYTES_MIN] = values.astype(_VALUE)[:, np.newaxis].view(np.uint8)
    payload = padded.tobytes()
    return [
        {"value": payload[start : start + value_bytes]}
        for start in range(0, len(payload), value_bytes)
    ]


def values_of(payloads: Sequence[bytes | None]) -> NDArray[np.int64]:
    """Return the value in each payload; FOREIGN_VALUE for one that holds none."""
    heads = [payload[:VALUE_BYTES_MIN] if payload else b"" for payload in payloads]
    joined = b"".join(heads)
    if len(joined) != len(heads) * VALUE_BYTES_MIN:
        foreign = FOREIGN_VALUE.to_bytes(VALUE_BYTES_MIN, "little", signed=True)
        joined = b"".join(head if len(head) == VALUE_BYTES_MIN else foreign for head in heads)
    return np.frombuffer(joined, _VALUE).astype(np.int64, copy=False)


def ends_of(reports: Sequence[MessageLike]) -> SendEnds:
    """Return the ends of the sends that these delivery reports are about."""
    codes = [0 if (error := report.error()) is None else error.code() for report in reports]
    outcomes = np.full(len(reports), _OK, dtype=np.uint8)
    if any(codes):
        outcomes[:] = [outcome_of(code, attempts_max=ATTEMPTS_UNBOUNDED).code for code in codes]
    errors = np.array(codes, dtype=np.int16)
    return SendEnds(
        values=values_of([report.value() for report in reports]),
        offsets=np.where(errors == 0, offsets_of(reports), np.int64(-1)),
        outcomes=outcomes,
        errors=errors,
    )


def offsets_of(reports: Sequence[MessageLike]) -> NDArray[np.int64]:
    """Return the offsets that brokers gave these records; -1 for one without.

    The reports are those of acknowledgements, in the order in which they came; of errors they say
    nothing. librdkafka gives the records of a batch the base offset of the answer and counts on
    from there, also where the answer has none: it is -1 where the broker has the batch already
    (DUPLICATE_SEQUENCE_NUMBER) and in an error, and starts at -1001 where no answer was asked for
    (acks=0) or none came. So an offset counts only if the first one of its batch is one.
    """
    numbers = [-1 if (offset := report.offset()) is None else offset for report in reports]
    offsets = np.maximum(np.array(numbers, dtype=np.int64), -1)
    if np.any(offsets < 0):
        offsets[_counted_from_nothing(reports, offsets)] = -1
    return offsets


def _counted_from_nothing(
    reports: Sequence[MessageLike], offsets: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return a mask of the reports that have no offset, or continue the count of one without."""
    unknown = offsets < 0
    # All below 0 is the same here: the first offset that a count from nothing reaches is 0.
    for first in (np.flatnonzero(unknown[:-1] & (offsets[1:] == 0)) + 1).tolist():
        place = _place(reports[first - 1])
        for row in range(first, len(reports)):
            if offsets[row] != row - first or _place(reports[row]) != place:
                break
            unknown[row] = True
    return unknown


def _place(report: MessageLike) -> tuple[str | None, int | None]:
    return report.topic(), report.partition()


def polled_of(messages: Sequence[MessageLike], *, key_of: Mapping[tuple[str, int], int]) -> Polled:
    """Return the records among what a poll returned, as columns, and the errors."""
    errors = tuple(error for message in messages if (error := message.error()) is not None)
    if errors:
        messages = [message for message in messages if message.error() is None]
    keys = [key_of[message.topic(), message.partition()] for message in messages]  # type: ignore[index]  # a record has both
    return Polled(
        keys=np.array(keys, dtype=np.int32),
        offsets=np.array([message.offset() for message in messages], dtype=np.int64),
        values=values_of([message.value() for message in messages]),
        errors=errors,
    )
