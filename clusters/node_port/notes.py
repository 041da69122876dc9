"""The notes of nodes to observers (`effects.NOTE`): facts as they become true, for oracles, traces.

A note changes nothing in the cluster. Its first element after the subject is what it is about.
"""

from typing import Final

VOTED: Final = "voted"
"""(epoch, candidate id): a vote was granted, and is durable."""
QUORUM_LEADER: Final = "quorum-leader"
"""(epoch,): this voter was elected."""
ACTIVE: Final = "active"
"""(epoch,): this controller has replayed all before its epoch and decides now."""
RESIGNED: Final = "resigned"
"""(epoch,): this controller is not active any more."""
APPENDED_METADATA: Final = "appended-metadata"
"""(base offset, epoch, records): the leader appended them; not committed yet."""
COMMITTED_METADATA: Final = "committed-metadata"
"""(end offset,): this node's high watermark of the metadata log, after it moved."""
ACKNOWLEDGED_METADATA: Final = "acknowledged-metadata"
"""(end offset, kind of the request, description): a client's write was acknowledged."""
BROKER_STATE: Final = "broker-state"
"""(BrokerState, broker epoch): a transition of the life cycle."""
FENCED_SELF: Final = "fenced-self"
"""(broker epoch,): this broker heard nothing of the controller for the broker-side time-out."""
LEADS: Final = "leads"
"""(partition key, leader epoch, log end offset): this broker leads from here on."""
FOLLOWS: Final = "follows"
"""(partition key, leader id, leader epoch)."""
HIGH_WATERMARK: Final = "high-watermark"
"""(partition key, leader epoch, offset): a leader's, after it moved."""
PROPOSED: Final = "proposed"
"""(partition key, ISR, partition epoch, epochs): a leader wants this ISR from here on.

`epochs`: of each member the broker epoch in the last fetch that the leader saw of it; -1: in none.
"""
TRUNCATED: Final = "truncated"
"""(partition key, offset, old end offset): a follower cut its log."""
CONTROLLER_ELECTED: Final = "controller-elected"
"""(controller epoch,): this broker has made /controller, and raised /controller_epoch to it."""
BROKER_CONTROLLED_STATE: Final = "broker-controlled-state"
"""(broker id, incarnation id, ControlledState): the controller keeps it in this state now."""
DECISION_ASKED: Final = "decision-asked"
"""(): the controller asks ZooKeeper to write what it decides; what holds is noted once it knows."""
DECISION_SETTLED: Final = "decision-settled"
"""(): the controller knows what holds of what it asked for, and decides what comes next."""
PARTITION_DECIDED: Final = "partition-decided"
"""(partition key, controller epoch, partition epoch, leader, leader epoch, ISR, incarnations).

The controller has written this state. The incarnation of each member of the ISR is as the
controller knows it; -1: it knows none.
"""
TOLD_LOWEST: Final = "told-lowest"
"""(broker id, offset): the controller told a broker this lowest acknowledged offset."""
VISIBLE: Final = "visible"
"""(offset,): this broker shows clients metadata below it."""

ACKNOWLEDGED: Final = "acknowledged"
"""A client's: (partition key, base offset, batch): its produce with acks=all was acknowledged."""
READ_RECORDS: Final = "read-records"
"""A client's: (partition key, batches): it read these records."""
READ_BEGAN: Final = "read-began"
"""A client's: (number,): it asks a broker for metadata, under a number of its own."""
READ_METADATA: Final = "read-metadata"
"""A client's: (number, broker id, metadata offset): the answer, and up to where it shows."""

ZNODES_CHANGED: Final = "znodes-changed"
"""A server's of ZooKeeper: (zxid, session, changes): it applied a transaction that changed znodes.

A change is (path, data, version); data is None if the znode is gone.
"""
