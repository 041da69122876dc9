"""Which field of which record is which column, also where Kafka says "no change" in numbers."""

from typing import Any

import pytest

from fencepost.clusters.protocol.metadata_records import DecodedRecord
from fencepost.clusters.witness.metadata_log import columns_of
from fencepost.history.cluster_schema import METADATA_LOG

COMMON = {"type", "type_key", "version", "control", "detail"}


def columns(name: str, /, **fields: Any) -> dict[str, Any]:
    record = DecodedRecord(
        type=name, type_key=1, version=0, control=False, fields=fields, detail="all"
    )
    found = columns_of(record, topics={"ID": "t"})
    assert found.keys() <= set(METADATA_LOG.names)
    return {
        column: value
        for column, value in found.items()
        if column not in COMMON and value is not None
    }


def test_registrations() -> None:
    assert columns(
        "RegisterBrokerRecord",
        brokerId=2,
        brokerEpoch=9,
        incarnationId="X",
        fenced=True,
        inControlledShutdown=False,
        rack=None,
    ) == {
        "broker_id": 2,
        "broker_epoch": 9,
        "incarnation_id": "X",
        "fenced": True,
        "in_controlled_shutdown": False,
    }
    supported = [
        {"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 25},
        {"name": "kraft.version", "minSupportedVersion": 0, "maxSupportedVersion": 1},
    ]
    registered = columns("RegisterBrokerRecord", brokerId=2, features=supported)
    assert registered["value"] == "metadata.version=7..25,kraft.version=0..1"
    assert columns("RegisterControllerRecord", controllerId=1001, incarnationId="X") == {
        "broker_id": 1001,
        "incarnation_id": "X",
    }
    assert columns("UnregisterBrokerRecord", brokerId=2, brokerEpoch=9) == {
        "broker_id": 2,
        "broker_epoch": 9,
    }


@pytest.mark.parametrize(
    ("stated", "fenced", "shutdown"),
    [
        ({"fenced": 1, "inControlledShutdown": 0}, True, None),
        ({"fenced": -1, "inControlledShutdown": 0}, False, None),
        ({"fenced": 0, "inControlledShutdown": 1}, None, True),
        ({"fenced": 1}, True, None),
    ],
)
def test_a_registration_change_says_what_it_changes(
    stated: dict[str, int], fenced: object, shutdown: object
) -> None:
    found = columns("BrokerRegistrationChangeRecord", brokerId=2, brokerEpoch=9, **stated)
    assert (found.get("fenced"), found.get("in_controlled_shutdown")) == (fenced, shutdown)


@pytest.mark.parametrize(
    ("name", "fenced"), [("FenceBrokerRecord", True), ("UnfenceBrokerRecord", False)]
)
def test_the_older_records_of_fencing(name: str, *, fenced: bool) -> None:
    assert columns(name, id=2, epoch=9) == {"broker_id": 2, "broker_epoch": 9, "fenced": fenced}


def test_partitions() -> None:
    assert columns(
        "PartitionRecord",
        partitionId=0,
        topicId="ID",
        replicas=[1, 2],
        isr=[1],
        leader=1,
        addingReplicas=[],
        removingReplicas=[2],
        leaderEpoch=3,
        partitionEpoch=4,
        eligibleLeaderReplicas=[2],
        lastKnownElr=None,
        leaderRecoveryState=0,
    ) == {
        "topic": "t",
        "topic_id": "ID",
        "partition": 0,
        "replicas": [1, 2],
        "isr": [1],
        "adding": [],
        "removing": [2],
        "leader": 1,
        "leader_epoch": 3,
        "partition_epoch": 4,
        "elr": [2],
        "leader_recovery_state": 0,
    }


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ({"leader": -2, "leaderRecoveryState": -1}, {}),
        ({"leader": -1, "leaderRecoveryState": 1}, {"leader": -1, "leader_recovery_state": 1}),
        ({"leader": 2, "leaderRecoveryState": 0}, {"leader": 2, "leader_recovery_state": 0}),
    ],
)
def test_a_partition_change_says_what_it_changes(
    stated: dict[str, int], found: dict[str, int]
) -> None:
    known = {"topic": "t", "topic_id": "ID", "partition": 0}
    assert columns("PartitionChangeRecord", partitionId=0, topicId="ID", **stated) == known | found


def test_topics() -> None:
    assert columns("TopicRecord", name="u", topicId="NEW") == {"topic": "u", "topic_id": "NEW"}
    assert columns("RemoveTopicRecord", topicId="ID") == {"topic": "t", "topic_id": "ID"}
    assert columns("ClearElrRecord", topicName="t") == {"topic": "t"}


@pytest.mark.parametrize(
    ("resource_type", "resource_name", "owner"),
    [
        (2, "t", {"topic": "t"}),
        (4, "2", {"broker_id": 2}),
        (4, "", {}),
        (4, "x", {}),
        (32, "group", {}),
    ],
)
def test_a_config_is_of_its_resource(
    resource_type: int, resource_name: str, owner: dict[str, object]
) -> None:
    stated = {"resourceType": resource_type, "resourceName": resource_name}
    found = columns("ConfigRecord", **stated, name="retention.ms", value="1")
    assert found == {"name": "retention.ms", "value": "1", **owner}


def test_names_and_values_of_other_records() -> None:
    assert columns("FeatureLevelRecord", name="metadata.version", featureLevel=8) == {
        "name": "metadata.version",
        "value": "8",
    }
    assert columns("ConfigRecord", resourceType=2, resourceName="t", name="x", value=None) == {
        "name": "x",
        "topic": "t",
    }
    assert columns("KRaftVersionRecord", version=0, kRaftVersion=1) == {
        "name": "kraft.version",
        "value": "1",
    }
    assert columns("LeaderChangeMessage", leaderId=1001) == {"leader": 1001}
    assert columns("NoOpRecord") == {}
    assert columns("SomethingNew", x=1) == {}
