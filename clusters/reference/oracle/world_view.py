"""The oracle's view of a simulated world: disks, and brokers that run."""

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.clusters.node_port.storage import (
    METADATA,
    Batch,
    LogName,
    MetadataBatch,
    PartitionKey,
)
from fencepost.clusters.reference.oracle.finding import Nodes
from fencepost.clusters.simulation.host import SimulatedHost


class WorldView(Nodes):
    """Over the hosts of a world, by their numbers. Logs are read where they lie, on the disks."""

    def __init__(self, hosts: Mapping[int, SimulatedHost]) -> None:
        self._hosts = hosts

    def metadata(self, node: int, start: int, end: int) -> Sequence[MetadataBatch]:
        """The batches of the node's metadata log that touch [start, end), in order."""
        return self._touching(node, METADATA, start, end)

    def records(self, node: int, key: PartitionKey, start: int, end: int) -> Sequence[Batch]:
        """The batches of a broker's replica that touch [start, end), in order; () without one."""
        return self._touching(node, key, start, end)

    def applied(self, node: int) -> int:
        """The metadata offset below which the broker has applied everything; -1: it is down."""
        broker = self._hosts[node].node
        return -1 if broker is None else broker.image.offset  # type: ignore[attr-defined]  # a broker

    def level(self, node: int) -> int:
        """The metadata.version that the broker has applied; 0: it is down."""
        broker = self._hosts[node].node
        return 0 if broker is None else broker.image.level  # type: ignore[attr-defined]  # a broker

    def incarnation(self, node: int) -> int:
        """The incarnation id of the process that runs as this node; -1: none does."""
        broker = self._hosts[node].node
        return -1 if broker is None else broker.situation.incarnation_id  # type: ignore[attr-defined]  # a broker

    def _touching(self, node: int, name: LogName, start: int, end: int) -> Sequence[Any]:
        """Looked for from the end: what is asked for is nearly always the newest."""
        batches = self._hosts[node].disk.batches(name)
        last = len(batches)
        while last and batches[last - 1].base_offset >= end:
            last -= 1
        first = last
        while first and batches[first - 1].end_offset > start:
            first -= 1
        return batches[first:last]


class ZkWorldView(WorldView):
    """Over brokers on ZooKeeper: an incarnation is a broker epoch, the zxid of a registration."""

    def incarnation(self, node: int) -> int:
        """The broker epoch that a running broker takes for its own; -1: it is down, or has none."""
        broker = self._broker(node)
        return -1 if broker is None else int(broker.situation.broker_epoch)

    def speaks(self, node: int) -> bool:
        """Return whether a broker that runs has a protocol with heartbeats."""
        broker = self._broker(node)
        return broker is None or broker.situation.zk_configuration.inter_broker_protocol > 1

    def timeouts_ns(self, node: int) -> tuple[int, int]:
        """Return the controller-side and the broker-side time-out of a broker that runs."""
        own = self._broker(node).situation.zk_configuration
        return own.controller_side_timeout_ns, own.broker_side_timeout_ns

    def _broker(self, node: int) -> Any:
        around: Any = self._hosts[node].node
        return None if around is None else around.inner
