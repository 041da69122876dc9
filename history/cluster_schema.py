"""The tables of the cluster itself: the frames on its wires, the data on its disks, its answers.

`schema.py` has the tables of the clients; what is said there of times and types holds here. Node
names are the harness's (`broker-1`, `controller-1`); ids, epochs and offsets are Kafka's own. A
partition is named by `topic` and `partition`, and by its key `topic-partition` where both are sure.

Null means that the thing has no such field, or that it could not be known; never a default.
"""

from typing import Final

import pyarrow as pa

from fencepost.history.ensemble_schema import ENSEMBLE, SERVER_DISKS, TRANSACTION_LOG, ZNODES
from fencepost.history.request_schema import (
    DESCRIBES,
    GROUP_OFFSETS,
    METADATA_WRITES,
    PARTITION_WRITES,
    STABLE_OFFSETS,
    TOPIC_SETTINGS,
    TRANSACTIONS,
    ids,
)

WIRE: Final = pa.schema(
    [
        # One row a frame and item of it. Frames are numbered in the order in which the proxy took
        # them: what waited behind a held frame had arrived before. `item` is 0-based: a partition
        # of AlterPartition or Fetch. A frame without items has one row, of item 0.
        #
        # Of the control plane every frame is here. Of a follower's Fetches of data those are that a
        # rule concerns, and those that tell their leader something new: another `broker_epoch`, or
        # a partition that no Fetch under it that was passed on had named on this connection.
        #
        # Of clients' Produces and Fetches those are that a rule concerns and, of each connection
        # and API, the first one and then one every half second, with their answers: `target` is the
        # broker that served the client. In virtual time clients' links are always on the tape, else
        # only where they lead through the proxy; no request may be missed. Runs of earlier versions
        # have none.
        pa.field("frame", pa.int64(), nullable=False),
        pa.field("item", pa.int32(), nullable=False),
        # Connections are numbered in the order in which they were accepted. A request and its
        # response have the same connection and correlation id.
        pa.field("connection", pa.int64(), nullable=False),
        # The dialling and the dialled party; the same in both directions. "clients": any outside.
        pa.field("source", pa.string(), nullable=False),
        pa.field("target", pa.string(), nullable=False),
        # "request" or "response".
        pa.field("direction", pa.string(), nullable=False),
        # The time when its last byte had arrived at the proxy.
        pa.field("time_ns", pa.int64(), nullable=False),
        # The time when it was passed on; null: it never was.
        pa.field("forwarded_ns", pa.int64()),
        # "forwarded", "held", "released", "delayed", "duplicated", "reordered", "rewritten",
        # "dropped", "answered" (the proxy replied in the target's place), "cut", or
        # "undeliverable" (released when its receiver was gone). "held": held to the end.
        pa.field("action", pa.string(), nullable=False),
        # The rule that did it, by its name; null if none concerned this frame.
        pa.field("rule", pa.string()),
        pa.field("api", pa.string(), nullable=False),
        pa.field("api_key", pa.int16(), nullable=False),
        # -1: messages of its protocol have no versions.
        pa.field("api_version", pa.int16(), nullable=False),
        pa.field("correlation_id", pa.int32(), nullable=False),
        # Of requests.
        pa.field("client_id", pa.string()),
        # The whole frame, its length included.
        pa.field("size_bytes", pa.int32(), nullable=False),
        # Of responses: the item's error, else the frame's, by Kafka's name ("NONE", …), or by
        # ZooKeeper's ("BADVERSION").
        pa.field("error", pa.string()),
        pa.field("topic", pa.string()),
        # The id as Kafka's tools write it: 22 characters of URL-safe base 64.
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        # The node that the frame is about: the broker of a heartbeat, a registration, an
        # AlterPartition; the replica of a Fetch; the voter of a Vote.
        pa.field("broker_id", pa.int32()),
        # Its epoch as the frame states it; -1 is Kafka's "unknown".
        pa.field("broker_epoch", pa.int64()),
        pa.field("incarnation_id", pa.string()),
        # Of an AlterPartition response, a Fetch response, a quorum RPC.
        pa.field("leader_id", pa.int32()),
        # Also a quorum's epoch: KRaft's controller epoch.
        pa.field("leader_epoch", pa.int32()),
        # Of the requests of a controller that keeps its state in ZooKeeper.
        pa.field("controller_epoch", pa.int32()),
        # Of a StopReplica: the replica's log is to be deleted.
        pa.field("delete", pa.bool_()),
        # Of an AlterPartition request: the epoch it expects; of a response: the epoch there is.
        pa.field("partition_epoch", pa.int32()),
        # Of an AlterPartition: the ISR asked for, or the one there is.
        ids("isr"),
        # The broker epoch of each member of `isr`, where the version has them (-1: not stated).
        pa.field("isr_epochs", pa.list_(pa.field("element", pa.int64()))),
        # Of a heartbeat: what the broker has applied; of a Fetch: the offset it fetches from.
        pa.field("fetch_offset", pa.int64()),
        # Of a Fetch request (KIP-227): above 0, the partitions of its session that it does not
        # name are fetched as well. 0 or -1: it names all that it fetches.
        pa.field("session_epoch", pa.int32()),
        pa.field("high_watermark", pa.int64()),
        # Heartbeats: what the broker wants, what the controller answers.
        pa.field("fenced", pa.bool_()),
        pa.field("shutting_down", pa.bool_()),
        # Of a heartbeat's answer, where the cluster promises one: the highest metadata offset that
        # every unfenced broker is said to have acknowledged, by its own heartbeats.
        pa.field("lowest_acknowledged_offset", pa.int64()),
        # Of an ApiVersions response: the level of metadata.version as it states it.
        pa.field("metadata_version", pa.int32()),
        # Of transactional RPCs.
        pa.field("transactional_id", pa.string()),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        # EndTxn, WriteTxnMarkers: commit or abort.
        pa.field("committed", pa.bool_()),
        # Of ZooKeeper: the znode that a request, a transaction or an event is about; its version
        # (of a request the one it expects, of an answer the one there is); the transaction.
        pa.field("path", pa.string()),
        pa.field("znode_version", pa.int32()),
        pa.field("zxid", pa.int64()),
        # One short line for people, of what an API has beside these columns; never for a check.
        pa.field("detail", pa.string()),
    ]
)

WINDOWS: Final = pa.schema(
    [
        # One row a window that the nemesis laid: a message was to be held (in an ambush: seen), so
        # that faults strike while it is under way. Dense from 0, in the order of `begin_ns`.
        pa.field("index", pa.int64(), nullable=False),
        # The name of its episode, with which the names of its rules begin: "mix-3".
        pa.field("window", pa.string(), nullable=False),
        # The message: "AlterPartition request", "Fetch response".
        pa.field("kind", pa.string(), nullable=False),
        # The kind of its episode, as in `faults`: "window", "relay", "late_fetch", "hold", ….
        pa.field("form", pa.string(), nullable=False),
        # The partition it was drawn for; null: it concerns none in particular.
        pa.field("key", pa.string()),
        # The time when its rule was laid.
        pa.field("begin_ns", pa.int64(), nullable=False),
        # The time when the first message met the rule: it opened. Null: it closed unused.
        pa.field("held_ns", pa.int64()),
        # The strikes that took effect while it was open, in order: verbs of plays ("kill", "wipe",
        # "move_leader"), or "change_controller", for whatever was done to the active controller.
        pa.field("struck", pa.list_(pa.field("element", pa.string())), nullable=False),
        # The time of the first of them.
        pa.field("strike_ns", pa.int64()),
        # The time when its rule was lifted; null: it was still laid when the recording ended.
        pa.field("end_ns", pa.int64()),
    ]
)

METADATA_LOG: Final = pa.schema(
    [
        # One row a record and node, from that node's own `__cluster_metadata`; in the order of
        # node, offset. What a node cut off its log during the run, to a snapshot of its own, is in
        # front of what its disk held at the end; what it lost with its disk is not. In the
        # ZooKeeper generation: a row a change of a znode that holds metadata, from the logs of that
        # server of the ensemble; the offset is its zxid, which the rows of one transaction share,
        # and the digest is the transaction's.
        pa.field("node", pa.string(), nullable=False),
        # True: it comes from a snapshot that the node's log goes on from, and its offset is the
        # snapshot's last contained offset. A log that begins at 0 needs none, and one is also told
        # where a log went on from a leader's (the node was behind, or had lost its disk): of what
        # was before, the node's rows may have a part only, or none.
        pa.field("snapshot", pa.bool_(), nullable=False),
        pa.field("metadata_offset", pa.int64(), nullable=False),
        # The leader epoch of the batch: KRaft's controller epoch.
        pa.field("controller_epoch", pa.int32(), nullable=False),
        # Wall clock of the controller that appended it, ms since 1970.
        pa.field("timestamp_ms", pa.int64(), nullable=False),
        # "PartitionChangeRecord", "LeaderChangeMessage", …; "unknown" if it could not be decoded.
        pa.field("type", pa.string(), nullable=False),
        pa.field("type_key", pa.int16(), nullable=False),
        pa.field("version", pa.int16(), nullable=False),
        # A control record of the log itself (leader change, snapshot header and footer, voters).
        pa.field("control", pa.bool_(), nullable=False),
        # The first 8 bytes of the SHA-256 of its value, signed: equal records have equal digests.
        pa.field("digest", pa.int64(), nullable=False),
        pa.field("topic", pa.string()),
        pa.field("topic_id", pa.string()),
        pa.field("partition", pa.int32()),
        ids("replicas"),
        ids("isr"),
        ids("adding"),
        ids("removing"),
        ids("elr"),
        ids("last_known_elr"),
        # -1: no leader. Null in a change that leaves the leader and its epoch as they are; not null
        # in a change that sets it anew, which bumps the leader epoch also where it stays the same.
        # Of a LeaderChangeMessage: the controller's node id.
        pa.field("leader", pa.int32()),
        # A change of KRaft's does not state them, each bumps the partition epoch; those of the
        # ZooKeeper generation do.
        pa.field("leader_epoch", pa.int32()),
        pa.field("partition_epoch", pa.int32()),
        # 0 recovered, 1 recovering: elected uncleanly.
        pa.field("leader_recovery_state", pa.int8()),
        pa.field("broker_id", pa.int32()),
        pa.field("broker_epoch", pa.int64()),
        pa.field("incarnation_id", pa.string()),
        # Null in a change that leaves it as it is.
        pa.field("fenced", pa.bool_()),
        pa.field("in_controlled_shutdown", pa.bool_()),
        # Of FeatureLevelRecord, ConfigRecord, and whatever else has a name and a value. That of
        # a RegisterBrokerRecord is the levels that it supports: "metadata.version=7..25,…".
        pa.field("name", pa.string()),
        pa.field("value", pa.string()),
        # The record's value as it lies on the disk, where it could not be decoded.
        pa.field("raw", pa.binary()),
        # All fields in one line, for people.
        pa.field("detail", pa.string()),
    ]
)

METADATA_OFFSETS: Final = pa.schema(
    [
        # The metadata offset that a node was known to have at that time.
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("node", pa.string(), nullable=False),
        pa.field("metadata_offset", pa.int64(), nullable=False),
        # "heartbeat": applied, as the broker told the controller; "quorum": fetched, as the leader
        # of the quorum says (DescribeQuorum).
        pa.field("source", pa.string(), nullable=False),
    ]
)

QUORUM_CLAIMS: Final = pa.schema(
    [
        # One row a controller that called itself the leader of the quorum when it was asked.
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("node", pa.string(), nullable=False),
        pa.field("controller_epoch", pa.int32(), nullable=False),
    ]
)

REPLICAS: Final = pa.schema(
    [
        # One row a replica of a partition of the run's topics, as it lay on its node's disk when
        # the node had stopped for good.
        pa.field("node", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("topic_id", pa.string()),
        pa.field("log_start_offset", pa.int64(), nullable=False),
        pa.field("log_end_offset", pa.int64(), nullable=False),
        # The last checkpoint: the true one may have been higher, never lower. Null: none there.
        pa.field("high_watermark", pa.int64()),
        # leader-epoch-checkpoint, in order.
        pa.field(
            "leader_epochs",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct(
                        [
                            pa.field("leader_epoch", pa.int32(), nullable=False),
                            pa.field("start_offset", pa.int64(), nullable=False),
                        ]
                    ),
                )
            ),
            nullable=False,
        ),
        pa.field("record_count", pa.int64(), nullable=False),
        # The reason why the end of its log could not be read, if it could not.
        pa.field("damage", pa.string()),
    ]
)

REPLICA_RECORDS: Final = pa.schema(
    [
        # One row a record and replica; spread over files like `records`, in the order of key, node,
        # offset.
        pa.field("key", pa.string(), nullable=False),
        pa.field("node", pa.string(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        # Of its batch.
        pa.field("leader_epoch", pa.int32(), nullable=False),
        pa.field("timestamp_ms", pa.int64(), nullable=False),
        # A transaction marker; it has no value.
        pa.field("control", pa.bool_(), nullable=False),
        # Of a marker: whether it commits.
        pa.field("committed", pa.bool_()),
        pa.field("transactional", pa.bool_(), nullable=False),
        # -1 without idempotence.
        pa.field("producer_id", pa.int64(), nullable=False),
        pa.field("producer_epoch", pa.int16(), nullable=False),
        # The value as in `records`; null if it is not one of ours.
        pa.field("value", pa.int64()),
        # The first 8 bytes of the SHA-256 of key and value, each behind its length; signed.
        pa.field("digest", pa.int64(), nullable=False),
    ]
)

NODE_SETTINGS: Final = pa.schema(
    [
        # One row a setting that a node was given, as its configuration file says it. A setting that
        # is not there has the release's default. Of a node and a name, the latest is the last.
        pa.field("node", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("value", pa.string(), nullable=False),
        # The time of a change on the way; it holds from the next start on. Null: the first value.
        pa.field("since_ns", pa.int64()),
    ]
)

LOG_FINDINGS: Final = pa.schema(
    [
        # One row a line of a node's log by which its process says that it is in trouble for good.
        pa.field("node", pa.string(), nullable=False),
        # The file's name, and the line's number in it, from 1 on.
        pa.field("file", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        # The time when it was logged, if the line says so; by the wall clock, to the millisecond.
        pa.field("time_ns", pa.int64()),
        # "fatal-fault": a fault that the software holds impossible; "unreadable-disk": nothing that
        # it could start from; "out-of-memory"; "jvm-crash"; "silent": it logged nothing (line 0).
        pa.field("finding", pa.string(), nullable=False),
        pa.field("text", pa.string(), nullable=False),
    ]
)

CLUSTER_TABLES: Final = {
    "wire": WIRE,
    "windows": WINDOWS,
    "ensemble": ENSEMBLE,
    "server_disks": SERVER_DISKS,
    "transaction_log": TRANSACTION_LOG,
    "znodes": ZNODES,
    "metadata_log": METADATA_LOG,
    "metadata_offsets": METADATA_OFFSETS,
    "quorum_claims": QUORUM_CLAIMS,
    "replicas": REPLICAS,
    "replica_records": REPLICA_RECORDS,
    "describes": DESCRIBES,
    "metadata_writes": METADATA_WRITES,
    "partition_writes": PARTITION_WRITES,
    "transactions": TRANSACTIONS,
    "group_offsets": GROUP_OFFSETS,
    "stable_offsets": STABLE_OFFSETS,
    "node_settings": NODE_SETTINGS,
    "topic_settings": TOPIC_SETTINGS,
    "log_findings": LOG_FINDINGS,
}
