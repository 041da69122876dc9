"""The sends of a simulated producer: what it is to do, where its keys stand, and the recorders.

`RecordedSends` are a run's; `CountedSends` are for runs of which nothing is kept but the counts.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple, Protocol

import numpy as np

from fencepost.clusters.node_port.storage import Batch
from fencepost.history.operation import Outcome
from fencepost.history.segment_format import PROCESS_SHIFT
from fencepost.history.send_recorder import SendRecorder
from fencepost.workloads.simulated.runs import runs

_MS: Final = 1_000_000


class BatchEnd(NamedTuple):
    """The end of the sends of a batch, the same for all."""

    values: Sequence[int]
    base_offset: int
    """The offset of the first record; -1: not known."""
    outcome: Outcome
    error: int
    time_ns: int


class Sends(Protocol):
    """The record of a producer. Times do not go back."""

    def invoke(self, first_key: int, count: int, *, time_ns: int) -> int:
        """Record `count` sends to all keys in turn, from `first_key` on.

        Returns the value of the first of them; the others follow it.
        """

    def complete(self, ends: Sequence[BatchEnd]) -> None:
        """Record how sends ended."""

    def close(self) -> None:
        """End the record."""


_CODES: Final = {outcome: outcome.code for outcome in Outcome}


class RecordedSends:
    """The record in the segments of a run: calls with the ends that follow them, many at once.

    A process that may be killed has to write a send down before it sends; a simulated one does
    everything again from its seed, and numpy costs as much for one as for a thousand.
    """

    def __init__(self, recorder: SendRecorder, *, key_count: int) -> None:
        self._recorder = recorder
        self._key_count = key_count
        self._next = recorder.next_value
        self._calls: list[tuple[int, int, int]] = []
        """(first key, how many, when) of what is not in the segments yet."""

    def invoke(self, first_key: int, count: int, *, time_ns: int) -> int:
        """Keep the calls; return the value of the first."""
        first = self._next
        self._next += count
        self._calls.append((first_key, count, time_ns))
        return first

    def complete(self, ends: Sequence[BatchEnd]) -> None:
        """Record the calls so far, then these ends."""
        self._record_calls()
        stated = [
            (len(end.values), end.base_offset, _CODES[end.outcome], end.error, end.time_ns)
            for end in ends
        ]
        counts, bases, outcomes, errors, times_ns = np.array(stated, np.int64).T
        values = chain.from_iterable([end.values for end in ends])
        known = np.repeat(bases >= 0, counts)
        self._recorder.complete(
            np.fromiter(values, np.int64, counts.sum()),
            offsets=np.where(known, runs(bases, counts), -1),
            outcomes=np.repeat(outcomes.astype(np.uint8), counts),
            errors=np.repeat(errors.astype(np.int16), counts),
            time_ns=np.repeat(times_ns, counts),
        )

    def close(self) -> None:
        """Record the calls that did not end, and let the segments be sealed."""
        self._record_calls()
        self._recorder.close()

    def _record_calls(self) -> None:
        if self._calls:
            first_keys, counts, times_ns = np.array(self._calls, np.int64).T
            in_turn = runs(first_keys, counts) % self._key_count
            self._recorder.invoke_each(
                in_turn.astype(np.int32), times_ns=np.repeat(times_ns, counts)
            )
            self._calls = []


class CountedSends:
    """The record of runs of which only the counts are kept; values are those of a recorded run."""

    def __init__(self, process: int) -> None:
        self._next = process << PROCESS_SHIFT

    def invoke(self, first_key: int, count: int, *, time_ns: int) -> int:  # noqa: ARG002
        """Hand out values; return the first."""
        first = self._next
        self._next += count
        return first

    def complete(self, ends: Sequence[BatchEnd]) -> None:
        """Forget them."""

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerPlan:
    """The plan of one producer."""

    process: int
    places: Sequence[tuple[str, int]]
    """Its keys, as (topic, partition)."""
    brokers: Sequence[int]
    rate: float
    """Records a second; 0: as many as possible."""
    acks: str = "all"
    idempotence: bool = True
    message_timeout_ns: int = 15_000 * _MS
    batch_max: int = 1000
    in_flight_max: int = 20_000
    seed: int = 0
    noted: bool = False
    """True if it notes what was acknowledged, for an oracle."""


class PartitionQueue:
    """A key: what waits for it, and the batch that is under way."""

    __slots__ = (
        "alone",
        "call_ns",
        "correlation",
        "due_ns",
        "number",
        "producer_epoch",
        "producer_id",
        "queue",
        "sending",
        "sent_ns",
        "sequence",
        "values",
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.queue: deque[tuple[int, Sequence[int]]] = deque()
        """(time of the call, values) of batches that were never sent."""
        self.producer_id = -1
        self.producer_epoch = -1
        self.sequence = 0
        self.sending: Batch | None = None
        self.values: Sequence[int] = ()
        self.call_ns = 0
        self.sent_ns = 0
        self.correlation = 0
        """The correlation of the request that the batch is in; 0: it is to be sent (again)."""
        self.due_ns = 0
        self.alone = False
        """True after a failure: its batches must not hold up other lanes."""
