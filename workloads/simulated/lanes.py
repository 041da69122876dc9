"""The keys of a simulated producer: what it does, and where each of its keys stands."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from clusters.node_port.storage import Batch

__all__ = ["Lane", "ProducerPlan"]

_MS: Final = 1_000_000


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


class Lane:
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
        self.queue: deque[tuple[int, tuple[int, ...]]] = deque()
        """(time of the call, values) of batches that were never sent."""
        self.producer_id = -1
        self.producer_epoch = -1
        self.sequence = 0
        self.sending: Batch | None = None
        self.values: tuple[int, ...] = ()
        self.call_ns = 0
        self.sent_ns = 0
        self.correlation = 0
        """The correlation of the request that the batch is in; 0: it is to be sent (again)."""
        self.due_ns = 0
        self.alone = False
        """True after a failure: its batches must not hold up other lanes."""
