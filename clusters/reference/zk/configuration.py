"""The configuration of a broker of the ZooKeeper generation, beside that of every node.

Times are ns of the node's own clock, as in `nodes.configuration`.
"""

from dataclasses import dataclass
from enum import IntEnum

from fencepost.clusters.reference.nodes.configuration import MS, Configuration


class InterBrokerProtocol(IntEnum):
    """inter.broker.protocol.version: the gate of document Z's behaviour (Z11)."""

    DIRECT = 1
    """Below it: no heartbeats, no fencing, ISRs are written to ZooKeeper by their leaders."""
    HEARTBEATS = 2
    """Heartbeats, incarnation ids, IsrChange."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZkConfiguration(Configuration):
    """A broker's. `node_id` -1: its id is found by its disk or in ZooKeeper (H01)."""

    inter_broker_protocol: InterBrokerProtocol = InterBrokerProtocol.HEARTBEATS
    inter_broker_protocol_max: InterBrokerProtocol = InterBrokerProtocol.HEARTBEATS
    """The highest that its software knows: what it registers as ready for (Z12, Z13)."""
    session_timeout_ns: int = 18_000 * MS
    """zookeeper.session.timeout.ms."""
    controller_side_timeout_ns: int = 9_000 * MS
    """controller.heartbeat.timeout.ms: a silent broker is inactive after it (Z07)."""
    broker_side_timeout_ns: int = 12_000 * MS
    """broker.heartbeat.timeout.ms: a broker that has no answer fences itself after it (Z08)."""
    host_name: str = ""
    """The host that its id is kept under in /brokers/hosts (H02)."""
    adopts_missing_ids: bool = False
    """Step b (H04): take the one id that topics name and no broker has."""
    reserved_broker_id_max: int = 1_000
    """reserved.broker.max.id: new ids of the sequence are above it."""
    garbage_scan_interval_ns: int = 60_000 * MS
    """The time between two removals of garbage below /brokers/hosts (H05); 0: never."""
    controlled_shutdown_retry_ns: int = 500 * MS
    """controlled.shutdown.retry.backoff.ms."""
