"""The requests of an operator: partitions, reassignments, elections, the state of the quorum."""

from collections.abc import Iterable
from typing import Any, Final

from clusters.reference.codec.api import Api, Asked, Door, Labels, grouped, ms_of, ns_of
from clusters.reference.codec.entities import Unreadable, Values
from clusters.reference.codec.identifiers import METADATA_TOPIC
from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages.control import (
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

__all__ = ["OPERATOR_APIS"]

_BOTH: Final = (Door.BROKER, Door.CONTROLLER)
_TIMEOUT_MS: Final = 30_000
_UNCLEAN: Final = 1
_NS_OF_MS: Final = 1_000_000


def _growth_asked(entity: Any, correlation: int, _: Labels) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        correlation,
        topics=tuple(
            NewPartitions(
                topic.name,
                topic.count,
                None
                if topic.assignments is None
                else tuple(tuple(one.broker_ids) for one in topic.assignments),
            )
            for topic in entity.topics
        ),
        timeout_ns=ns_of(entity.timeout),
        validate_only=entity.validate_only,
    )


def _growth_ask(request: CreatePartitionsRequest, _: Labels) -> tuple[int, Values]:
    return 3, {
        "topics": [
            {
                "name": one.name,
                "count": one.count,
                "assignments": None
                if one.assignment is None
                else [{"broker_ids": replicas} for replicas in one.assignment],
            }
            for one in request.topics
        ],
        "timeout": ms_of(request.timeout_ns),
        "validate_only": request.validate_only,
    }


def _growth_answer(response: CreatePartitionsResponse, _: Asked) -> Values:
    return {
        "results": [
            {"name": name, "error_code": error, "error_message": words or None}
            for name, error, words in response.topics
        ]
    }


def _growth_answered(
    entity: Any, request: CreatePartitionsRequest, _node: int, _: Labels
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        request.correlation,
        topics=tuple(
            (one.name, one.error_code.value, one.error_message or "") for one in entity.results
        ),
    )


def _alter_asked(entity: Any, correlation: int, _: Labels) -> AlterReassignmentsRequest:
    return AlterReassignmentsRequest(
        correlation,
        moves=tuple(
            (topic.name, one.partition_index, _replicas(one.replicas))
            for topic in entity.topics
            for one in topic.partitions
        ),
    )


def _replicas(found: Iterable[int] | None) -> tuple[int, ...] | None:
    return None if found is None else tuple(found)


def _alter_ask(request: AlterReassignmentsRequest, _: Labels) -> tuple[int, Values]:
    by_topic = grouped((name, (index, replicas)) for name, index, replicas in request.moves)
    return 0, {
        "timeout": _TIMEOUT_MS,
        "topics": [
            {
                "name": name,
                "partitions": [
                    {"partition_index": index, "replicas": replicas} for index, replicas in moves
                ],
            }
            for name, moves in by_topic.items()
        ],
    }


def _alter_answer(response: AlterReassignmentsResponse, _: Asked) -> Values:
    by_topic = grouped((name, tuple(rest)) for name, *rest in response.moves)
    return {
        "error_code": response.error,
        "responses": [
            {
                "name": name,
                "partitions": [
                    {
                        "partition_index": index,
                        "error_code": error,
                        "error_message": words or None,
                    }
                    for index, error, words in moves
                ],
            }
            for name, moves in by_topic.items()
        ],
    }


def _alter_answered(
    entity: Any, request: AlterReassignmentsRequest, _node: int, _: Labels
) -> AlterReassignmentsResponse:
    return AlterReassignmentsResponse(
        request.correlation,
        error=entity.error_code.value,
        moves=tuple(
            (topic.name, one.partition_index, one.error_code.value, one.error_message or "")
            for topic in entity.responses
            for one in topic.partitions
        ),
    )


def _list_asked(entity: Any, correlation: int, _: Labels) -> ListReassignmentsRequest:
    wanted = entity.topics
    return ListReassignmentsRequest(
        correlation,
        None
        if wanted is None
        else tuple((topic.name, index) for topic in wanted for index in topic.partition_indexes),
    )


def _list_ask(request: ListReassignmentsRequest, _: Labels) -> tuple[int, Values]:
    wanted = request.partitions
    topics = (
        None
        if wanted is None
        else [
            {"name": name, "partition_indexes": indexes}
            for name, indexes in grouped(wanted).items()
        ]
    )
    return 0, {"timeout": _TIMEOUT_MS, "topics": topics}


def _list_answer(response: ListReassignmentsResponse, _: Asked) -> Values:
    by_topic = grouped((name, tuple(rest)) for name, *rest in response.partitions)
    return {
        "error_code": response.error,
        "topics": [
            {
                "name": name,
                "partitions": [
                    {
                        "partition_index": index,
                        "replicas": replicas,
                        "adding_replicas": adding,
                        "removing_replicas": removing,
                    }
                    for index, replicas, adding, removing in partitions
                ],
            }
            for name, partitions in by_topic.items()
        ],
    }


def _list_answered(
    entity: Any, request: ListReassignmentsRequest, _node: int, _: Labels
) -> ListReassignmentsResponse:
    return ListReassignmentsResponse(
        request.correlation,
        error=entity.error_code.value,
        partitions=tuple(
            (
                topic.name,
                one.partition_index,
                tuple(one.replicas),
                tuple(one.adding_replicas),
                tuple(one.removing_replicas),
            )
            for topic in entity.topics
            for one in topic.partitions
        ),
    )


def _elect_asked(entity: Any, correlation: int, _: Labels) -> ElectLeadersRequest:
    wanted = entity.topic_partitions
    return ElectLeadersRequest(
        correlation,
        unclean=entity.election_type == _UNCLEAN,
        partitions=None
        if wanted is None
        else tuple((topic.topic, index) for topic in wanted for index in topic.partitions),
    )


def _elect_ask(request: ElectLeadersRequest, _: Labels) -> tuple[int, Values]:
    wanted = request.partitions
    return 2, {
        "election_type": _UNCLEAN if request.unclean else 0,
        "topic_partitions": None
        if wanted is None
        else [{"topic": name, "partitions": some} for name, some in grouped(wanted).items()],
        "timeout": _TIMEOUT_MS,
    }


def _elect_answer(response: ElectLeadersResponse, _: Asked) -> Values:
    by_topic = grouped((name, (index, error)) for name, index, error in response.partitions)
    return {
        "error_code": response.error,
        "replica_election_results": [
            {
                "topic": name,
                "partition_result": [
                    {"partition_id": index, "error_code": error} for index, error in results
                ],
            }
            for name, results in by_topic.items()
        ],
    }


def _elect_answered(
    entity: Any, request: ElectLeadersRequest, _node: int, _: Labels
) -> ElectLeadersResponse:
    return ElectLeadersResponse(
        request.correlation,
        error=entity.error_code.value,
        partitions=tuple(
            (topic.topic, one.partition_id, one.error_code.value)
            for topic in entity.replica_election_results
            for one in topic.partition_result
        ),
    )


def _quorum_asked(entity: Any, correlation: int, _: Labels) -> DescribeQuorumRequest:
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
    Api(
        name="CreatePartitions",
        key=37,
        kind=CreatePartitionsRequest.kind,
        versions=(0, 3),
        doors=(Door.BROKER, Door.CONTROLLER),
        asked=_growth_asked,
        answer=_growth_answer,
        ask=_growth_ask,
        answered=_growth_answered,
    ),
    Api(
        name="AlterPartitionReassignments",
        key=45,
        kind=AlterReassignmentsRequest.kind,
        versions=(0, 0),
        doors=_BOTH,
        asked=_alter_asked,
        answer=_alter_answer,
        ask=_alter_ask,
        answered=_alter_answered,
    ),
    Api(
        name="ListPartitionReassignments",
        key=46,
        kind=ListReassignmentsRequest.kind,
        versions=(0, 0),
        doors=_BOTH,
        asked=_list_asked,
        answer=_list_answer,
        ask=_list_ask,
        answered=_list_answered,
    ),
    Api(
        name="ElectLeaders",
        key=43,
        kind=ElectLeadersRequest.kind,
        versions=(1, 2),
        doors=_BOTH,
        asked=_elect_asked,
        answer=_elect_answer,
        ask=_elect_ask,
        answered=_elect_answered,
    ),
    Api(
        name="DescribeQuorum",
        key=55,
        kind=DescribeQuorumRequest.kind,
        versions=(0, 1),
        doors=(Door.CONTROLLER,),
        asked=_quorum_asked,
        answer=_quorum_answer,
    ),
)
