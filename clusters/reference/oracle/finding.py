"""The findings of the oracle, and the nodes that it may look at."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from fencepost.clusters.node_port.storage import Batch, MetadataBatch, PartitionKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An anomaly, by the catalogue's name, at the step at which it was first to be seen."""

    anomaly: str
    time_ns: int
    node: int
    """The node at whose step it was found."""
    words: str
    """The expected and the found value, both sides by name."""

    def __str__(self) -> str:
        return f"{self.anomaly} at {self.time_ns / 1e9:.3f} s: {self.words}"


class Nodes(Protocol):
    """The insides of nodes, running or not, as far as the oracle looks at them."""

    def metadata(self, node: int, start: int, end: int) -> Sequence[MetadataBatch]:
        """The batches of the node's metadata log that touch [start, end), in order."""

    def records(self, node: int, key: PartitionKey, start: int, end: int) -> Sequence[Batch]:
        """The batches of a broker's replica that touch [start, end), in order; () without one."""

    def applied(self, node: int) -> int:
        """The metadata offset below which the broker has applied everything; -1: it is down."""

    def level(self, node: int) -> int:
        """The metadata.version that the broker has applied; 0: it is down."""

    def incarnation(self, node: int) -> int:
        """The incarnation id of the process that runs as this node; -1: none does."""
