"""The kinds of traffic of a node: each goes to another node over connections of its own.

As Kafka's brokers do it: the metadata log is fetched on one connection, registration and heartbeats
go over another, AlterPartition has one alone, and each leader that is fetched from has one. So each
can be held up without the others. Requests of a controller of the ZooKeeper generation go to a
broker over one connection, in order.

A request that a node asks again, since its first one has no answer yet, goes over a new connection:
the first one is given up with what it still has to say, while its bytes stay on their way. Requests
that are passed on for clients are many at once, and share one.

The shell of a process dials by this, and the wire of a simulated cluster tells by it which messages
are behind one another.
"""

from typing import Final

from clusters.reference.codec.zk_controller_apis import ZK_CONTROLLER_APIS
from clusters.reference.nodes.messages import control, data, quorum
from clusters.reference.zk import messages as zk

__all__ = ["Traffic", "traffic_of"]


class Traffic:
    """The kinds of traffic, each with connections of its own."""

    VOTES: Final = "votes"
    METADATA: Final = "metadata"
    HEARTBEATS: Final = "heartbeats"
    ALTER_PARTITION: Final = "alter-partition"
    REPLICATION: Final = "replication"
    CONTROLLER: Final = "controller"
    ISR_CHANGE: Final = "isr-change"
    FORWARDED: Final = "forwarded"


_TRAFFIC: Final = {
    quorum.VoteRequest.kind: Traffic.VOTES,
    quorum.BeginQuorumEpochRequest.kind: Traffic.VOTES,
    quorum.EndQuorumEpochRequest.kind: Traffic.VOTES,
    quorum.MetadataFetchRequest.kind: Traffic.METADATA,
    quorum.FetchSnapshotRequest.kind: Traffic.METADATA,
    control.BrokerRegistrationRequest.kind: Traffic.HEARTBEATS,
    control.BrokerHeartbeatRequest.kind: Traffic.HEARTBEATS,
    control.AlterPartitionRequest.kind: Traffic.ALTER_PARTITION,
    data.FetchRequest.kind: Traffic.REPLICATION,
    data.OffsetsForLeaderEpochRequest.kind: Traffic.REPLICATION,
    **dict.fromkeys((one.kind for one in ZK_CONTROLLER_APIS), Traffic.CONTROLLER),
    zk.ControlledShutdownRequest.kind: Traffic.HEARTBEATS,
    zk.MetadataHeartbeatRequest.kind: Traffic.HEARTBEATS,
    zk.IsrChangeRequest.kind: Traffic.ISR_CHANGE,
}


def traffic_of(kind: int) -> str:
    """Return the traffic of a kind of request between nodes."""
    return _TRAFFIC.get(kind, Traffic.FORWARDED)
