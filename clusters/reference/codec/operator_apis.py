"""The requests of an operator: partitions, reassignments, elections, the state of the quorum."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from fencepost.clusters.protocol.entities import Unreadable, Values
from fencepost.clusters.protocol.rpc import RpcTable
from fencepost.clusters.protocol.rpcs.operators import ALTER_REASSIGNMENTS, ELECT_LEADERS
from fencepost.clusters.reference.codec.api import Api, Asked, ListenerType, RequestTopics
from fencepost.clusters.reference.codec.identifiers import METADATA_TOPIC
from fencepost.clusters.reference.codec.layout import (
    DURATION,
    ERROR,
    NAME,
    NUMBERS,
    always,
    by_topic,
    each,
    field,
    nullable,
    number,
)
from fencepost.clusters.reference.codec.tables import between_nodes
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
    AlterReassignmentsRequest,
    AlterReassignmentsResponse,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListReassignmentsRequest,
    ListReassignmentsResponse,
    NewPartitions,
)

_BOTH: Final = (ListenerType.BROKER, ListenerType.CONTROLLER)
_TIMEOUT: Final = always(timeout=30_000)
"""In ms; the core has none."""
_NS_OF_MS: Final = 1_000_000

_ERROR: Final = field("error", "error_code", ERROR)
_WORDS: Final = field("words", "error_message", NAME)
_TOPIC: Final = (field("topic", "name"),)
_INDEX: Final = field("partition", "partition_index")
_REPLICAS: Final = field("replicas", way=NUMBERS)
_ASSIGNMENTS: Final = each(field("replicas", "broker_ids", NUMBERS))


def _quorum_asked(entity: Any, correlation: int, _: RequestTopics) -> DescribeQuorumRequest:
    named = [(topic.topic_name, len(topic.partitions)) for topic in entity.topics]
    if named != [(METADATA_TOPIC, 1)]:
        raise Unreadable(f"a question about the quorum of {named}")
    return DescribeQuorumRequest(correlation)


def _quorum_answer(response: DescribeQuorumResponse, asked: Asked) -> Values:
    def replicas(some: Iterable[tuple[int, int, int, int]]) -> list[Values]:
        return [
            {
                "replica_id": replica_id,
                "log_end_offset": end,
                "last_fetch_timestamp": _wall_ms(fetched_ns, asked),
                "last_caught_up_timestamp": _wall_ms(caught_up_ns, asked),
            }
            for replica_id, end, fetched_ns, caught_up_ns in some
        ]

    partition = {
        "partition_index": 0,
        "error_code": response.error,
        "leader_id": response.leader_id,
        "leader_epoch": response.epoch,
        "high_watermark": response.high_watermark,
        "current_voters": replicas(response.voters),
        "observers": replicas(response.observers),
    }
    return {
        "error_code": Error.NONE,
        "topics": [{"topic_name": METADATA_TOPIC, "partitions": [partition]}],
    }


def _wall_ms(time_ns: int, asked: Asked) -> int:
    return -1 if time_ns < 0 else (time_ns + asked.wall_offset_ns) // _NS_OF_MS


OPERATOR_APIS: Final = (
    between_nodes(
        RpcTable(
            name="CreatePartitions",
            asks=(
                field(
                    "topics",
                    way=each(
                        field("name"),
                        field("count"),
                        field("assignment", "assignments", nullable(_ASSIGNMENTS)),
                        into=NewPartitions,
                    ),
                ),
                field("timeout_ns", "timeout", DURATION),
                field("validate_only"),
            ),
            answers=(field("topics", "results", each(field("name"), _ERROR, _WORDS)),),
        ),
        (0, 3),
        _BOTH,
        request=CreatePartitionsRequest,
        response=CreatePartitionsResponse,
    ),
    between_nodes(
        replace(ALTER_REASSIGNMENTS, asks=(_TIMEOUT, *ALTER_REASSIGNMENTS.asks)),
        (0, 0),
        _BOTH,
        request=AlterReassignmentsRequest,
        response=AlterReassignmentsResponse,
    ),
    between_nodes(
        RpcTable(
            name="ListPartitionReassignments",
            asks=(
                _TIMEOUT,
                field(
                    "partitions",
                    "topics",
                    nullable(by_topic(_TOPIC, "partition_indexes", number("partition"))),
                ),
            ),
            answers=(
                _ERROR,
                field(
                    "partitions",
                    "topics",
                    by_topic(
                        _TOPIC,
                        "partitions",
                        _INDEX,
                        _REPLICAS,
                        field("adding", "adding_replicas", NUMBERS),
                        field("removing", "removing_replicas", NUMBERS),
                    ),
                ),
            ),
        ),
        (0, 0),
        _BOTH,
        request=ListReassignmentsRequest,
        response=ListReassignmentsResponse,
    ),
    between_nodes(
        replace(ELECT_LEADERS, asks=(_TIMEOUT, *ELECT_LEADERS.asks)),
        (1, 2),
        _BOTH,
        request=ElectLeadersRequest,
        response=ElectLeadersResponse,
    ),
    Api(
        name="DescribeQuorum",
        key=55,
        kind=DescribeQuorumRequest.kind,
        versions=(0, 1),
        doors=(ListenerType.CONTROLLER,),
        asked=_quorum_asked,
        answer=_quorum_answer,
    ),
)
