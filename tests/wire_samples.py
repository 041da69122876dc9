"""One message of every kind that nodes send each other, and what answers it."""

from dataclasses import replace

from fencepost.clusters.node_port.storage import Batch, MetadataBatch, Snapshot
from fencepost.clusters.protocol.record_batches import BatchHeader as Header
from fencepost.clusters.protocol.record_batches import encoded_batch_header
from fencepost.clusters.protocol.record_encoding import encoded_record
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.messages import control, data, quorum
from fencepost.clusters.reference.nodes.records import (
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    FeatureLevelRecord,
    LeaderChangeMessage,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)

TOPIC_ID = (1 << 127) + 5
KEY = (TOPIC_ID, 3)
VOTERS = (1001, 1002, 1003)

RECORDS = (
    FeatureLevelRecord("metadata.version", 3),
    RegisterBrokerRecord(
        1,
        7,
        (1 << 128) - 1,
        fenced=True,
        listeners=(("CLIENT", "127.0.0.1", 40_000, 0), ("REPL", "broker-1.repl", 9093, 0)),
        features=(("metadata.version", 1, 3),),
        rack="r1",
        in_controlled_shutdown=True,
        offset=12,
    ),
    RegisterBrokerRecord(2, 8, 0, fenced=False, listeners=(), features=()),
    UnregisterBrokerRecord(1, 7),
    BrokerRegistrationChangeRecord(1, 7, fenced=False),
    BrokerRegistrationChangeRecord(1, 7, in_controlled_shutdown=True),
    BrokerRegistrationChangeRecord(1, 7, fenced=True, in_controlled_shutdown=False),
    TopicRecord("t", TOPIC_ID),
    RemoveTopicRecord(TOPIC_ID),
    PartitionRecord(TOPIC_ID, 0, (1, 2), (2,), -1, 4, 9, (3,), (1,), recovering=True),
    PartitionChangeRecord(TOPIC_ID, 0),
    PartitionChangeRecord(TOPIC_ID, 0, isr=(), leader=-1, replicas=(1,), adding=(), removing=(2,)),
    PartitionChangeRecord(TOPIC_ID, 0, leader=2, bumps_leader_epoch=False, recovering=False),
    ConfigRecord(2, "t", "min.insync.replicas", "2"),
    ConfigRecord(4, "", "a", None),
    ProducerIdsRecord(1, 7, 3000),
    NoOpRecord(),
)
BATCHES = (
    MetadataBatch(4, 2, (LeaderChangeMessage(1001, VOTERS),)),
    MetadataBatch(5, 2, RECORDS),
)
SNAPSHOT = Snapshot(end_offset=40, epoch=2, records=RECORDS * 100)


def image_with(name: str = "t") -> MetadataImage:
    """An image that knows one topic."""
    image = MetadataImage()
    image.topics[name] = TOPIC_ID
    image.names[TOPIC_ID] = name
    return image


def client_batch(*values: bytes, base_sequence: int = -1) -> bytes:
    """A batch as a producer encodes it."""
    body = b"".join(
        encoded_record(offset_delta=delta, value=value) for delta, value in enumerate(values)
    )
    header = Header(
        base_offset=0,
        length=0,
        leader_epoch=-1,
        magic=2,
        crc=0,
        attributes=0,
        last_offset_delta=len(values) - 1,
        base_timestamp_ms=5,
        max_timestamp_ms=6,
        producer_id=9 if base_sequence >= 0 else -1,
        producer_epoch=1 if base_sequence >= 0 else -1,
        base_sequence=base_sequence,
        record_count=len(values),
        position=0,
    )
    return encoded_batch_header(header, body) + body


def placed(payload: bytes, *, base_offset: int, leader_epoch: int, count: int) -> Batch:
    """A batch as a leader has appended it."""
    moved = base_offset.to_bytes(8) + payload[8:12] + leader_epoch.to_bytes(4) + payload[16:]
    return Batch(base_offset, leader_epoch, count, -1, -1, -1, moved)


_RECORDS = (
    placed(client_batch(b"a", b"b"), base_offset=10, leader_epoch=4, count=2),
    placed(client_batch(b"c"), base_offset=12, leader_epoch=5, count=1),
)
_ITEM = control.AlterPartitionItem(KEY, 4, 9, (1, 2), (7, 8))
_FETCH = data.FetchRequest(
    1,
    replica_id=2,
    replica_epoch=-1,
    version=14,
    partitions=((KEY, 10, 4, 3), ((TOPIC_ID, 0), 0, 1, -1)),
    max_wait_ns=500_000_000,
    max_bytes=1 << 20,
)
_FETCHED = data.FetchResponse(
    1,
    0,
    (
        data.FetchedPartition(KEY, 0, 4, 12, 0, _RECORDS),
        data.FetchedPartition((TOPIC_ID, 0), 0, 1, 5, 0, (), 3, 8),
    ),
)
_HEARTBEAT = control.BrokerHeartbeatRequest(1, 1, 7, 41, 3, 1)
_BEATEN = control.BrokerHeartbeatResponse(1, 0, 1002, 3, True, 18_000, -1)
_ALTER = control.AlterPartitionRequest(
    1, 1, 7, 3, (_ITEM, replace(_ITEM, key=(TOPIC_ID, 0), recovering=True))
)

EXCHANGES = {
    "Vote": (quorum.VoteRequest(1, 6, 1001, 5, 40), quorum.VoteResponse(1, 1002, 6, -1, True)),
    "BeginQuorumEpoch": (
        quorum.BeginQuorumEpochRequest(1, 6, 1001),
        quorum.BeginQuorumEpochResponse(1, 1002, 6, 1001),
    ),
    "EndQuorumEpoch": (
        quorum.EndQuorumEpochRequest(1, 6, 1001, (1003, 1002)),
        quorum.EndQuorumEpochResponse(1, 1002, 7, -1),
    ),
    "metadata-fetch": (
        quorum.MetadataFetchRequest(1, 1003, 6, 40, 5, 500_000_000, is_voter=True),
        quorum.MetadataFetchResponse(1, 0, 6, 1001, 9, BATCHES),
    ),
    "metadata-fetch-diverging": (
        quorum.MetadataFetchRequest(1, 2, -1, 40, 5, 0, is_voter=False),
        quorum.MetadataFetchResponse(1, 0, 6, 1001, 30, (), 4, 20),
    ),
    "metadata-fetch-snapshot": (
        quorum.MetadataFetchRequest(1, 2, 6, 0, 0, 0, is_voter=False),
        quorum.MetadataFetchResponse(1, 74, 7, -1, -1, (), -1, -1, 40, 2),
    ),
    "FetchSnapshot": (
        quorum.FetchSnapshotRequest(1, 2, 6, 40, 2, 0, 1 << 20),
        quorum.FetchSnapshotResponse(1, 0, 6, 1001, 8, 3, b"a piece"),
    ),
    "FetchSnapshot-none": (
        quorum.FetchSnapshotRequest(1, 2, 6, 40, 2, 9, 7),
        quorum.FetchSnapshotResponse(1, 98, 6, 1001),
    ),
    "BrokerRegistration": (
        control.BrokerRegistrationRequest(
            1,
            broker_id=1,
            incarnation_id=(1 << 128) - 1,
            broker_epoch=-1,
            current_metadata_offset=0,
            listeners=RECORDS[1].listeners,
            features=(("metadata.version", 1, 3),),
            rack=None,
            cluster_id="c",
        ),
        control.BrokerRegistrationResponse(1, 0, 1002, 41, 18_000),
    ),
    "BrokerHeartbeat-58": (replace(_HEARTBEAT, level=2), _BEATEN),
    "BrokerHeartbeat-58-refused": (_HEARTBEAT, replace(_BEATEN, error=77, next_state=4)),
    "BrokerHeartbeat-63": (
        replace(_HEARTBEAT, level=3),
        replace(_BEATEN, lowest_acknowledged_offset=41),
    ),
    "BrokerHeartbeat-63-fenced": (
        replace(_HEARTBEAT, level=3, target_state=4),
        replace(_BEATEN, next_state=4, is_caught_up=False, lowest_acknowledged_offset=0),
    ),
    "BrokerHeartbeat-63-leaving": (
        replace(_HEARTBEAT, level=3, target_state=6),
        replace(_BEATEN, next_state=6, lowest_acknowledged_offset=9),
    ),
    "BrokerHeartbeat-63-gone": (
        replace(_HEARTBEAT, level=3, target_state=6),
        replace(_BEATEN, next_state=0, lowest_acknowledged_offset=9),
    ),
    "AlterPartition-3": (
        _ALTER,
        control.AlterPartitionResponse(
            1,
            0,
            (
                replace(_ITEM, isr_epochs=(), leader_id=1, recovering=True),
                replace(_ITEM, key=(TOPIC_ID, 0), isr=(), isr_epochs=(), error=107),
            ),
        ),
    ),
    "AlterPartition-2": (
        replace(_ALTER, version=2, items=(replace(_ITEM, isr_epochs=()),)),
        control.AlterPartitionResponse(1, 41, ()),
    ),
    "CreateTopics": (
        control.CreateTopicsRequest(
            1,
            (
                control.NewTopic("t", 3, 2, None, (("min.insync.replicas", "2"),)),
                control.NewTopic("u", -1, -1, ((1, 2), (2, 1))),
            ),
            timeout_ns=5_000_000_000,
            validate_only=True,
        ),
        control.CreateTopicsResponse(1, (("t", TOPIC_ID, 0, ""), ("u", -1, 36, "is there"))),
    ),
    "CreatePartitions": (
        control.CreatePartitionsRequest(
            1,
            (control.NewPartitions("t", 4), control.NewPartitions("u", 3, ((1, 2), (2, 1)))),
            timeout_ns=5_000_000_000,
            validate_only=True,
        ),
        control.CreatePartitionsResponse(1, (("t", 0, ""), ("u", 37, "has 4"))),
    ),
    "DeleteTopics": (
        control.DeleteTopicsRequest(1, (("t", -1), ("", TOPIC_ID)), 5_000_000_000),
        control.DeleteTopicsResponse(1, (("t", TOPIC_ID, 0), ("", TOPIC_ID, 100))),
    ),
    "IncrementalAlterConfigs": (
        control.AlterConfigsRequest(
            1, ((2, "t", "a", "1"), (2, "t", "b", None), (4, "1", "c", ""))
        ),
        control.AlterConfigsResponse(1, ((2, "t", 0, ""), (4, "1", 40, "no number"))),
    ),
    "AlterPartitionReassignments": (
        control.AlterReassignmentsRequest(1, (("t", 0, (1, 2)), ("t", 1, None))),
        control.AlterReassignmentsResponse(1, 0, (("t", 0, 0, ""), ("t", 1, 85, "none"))),
    ),
    "ListPartitionReassignments": (
        control.ListReassignmentsRequest(1, (("t", 0), ("u", 2))),
        control.ListReassignmentsResponse(1, 0, (("t", 0, (1, 2, 3), (3,), (1,)),)),
    ),
    "ListPartitionReassignments-all": (
        control.ListReassignmentsRequest(1, None),
        control.ListReassignmentsResponse(1, 41, ()),
    ),
    "ElectLeaders": (
        control.ElectLeadersRequest(1, True, (("t", 0), ("t", 1))),
        control.ElectLeadersResponse(1, 0, (("t", 0, 0), ("t", 1, 84))),
    ),
    "ElectLeaders-all": (
        control.ElectLeadersRequest(1, False, None),
        control.ElectLeadersResponse(1, 41, ()),
    ),
    "AllocateProducerIds": (
        control.AllocateProducerIdsRequest(1, 1, 7),
        control.AllocateProducerIdsResponse(1, 0, 3000, 1000),
    ),
    "UpdateFeatures": (
        control.UpdateFeaturesRequest(1, (("metadata.version", 3),)),
        control.UpdateFeaturesResponse(1, 0),
    ),
    "UpdateFeatures-refused": (
        control.UpdateFeaturesRequest(1, (("metadata.version", 9),)),
        control.UpdateFeaturesResponse(1, 96, "no broker has it"),
    ),
    "Fetch-14": (_FETCH, _FETCHED),
    "Fetch-15": (replace(_FETCH, version=15, replica_epoch=7), _FETCHED),
    "OffsetForLeaderEpoch": (
        data.OffsetsForLeaderEpochRequest(1, 2, ((KEY, 4, 3),)),
        data.OffsetsForLeaderEpochResponse(1, ((KEY, 0, 3, 9),)),
    ),
}
"""Requests of nodes, and a response to each, both of correlation 1."""
