"""CreatePartitions, which brokers pass on: topics get more partitions."""

from typing import Any, Final

from clusters.reference.codec.api import Api, Asked, Door, Labels, ms_of, ns_of
from clusters.reference.codec.entities import Values
from clusters.reference.nodes.messages.control import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    NewPartitions,
)

__all__ = ["GROWTH_APIS"]


def _asked(entity: Any, correlation: int, _: Labels) -> CreatePartitionsRequest:
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


def _ask(request: CreatePartitionsRequest, _: Labels) -> tuple[int, Values]:
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


def _answer(response: CreatePartitionsResponse, _: Asked) -> Values:
    return {
        "results": [
            {"name": name, "error_code": error, "error_message": words or None}
            for name, error, words in response.topics
        ]
    }


def _answered(
    entity: Any, request: CreatePartitionsRequest, _node: int, _: Labels
) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        request.correlation,
        topics=tuple(
            (one.name, one.error_code.value, one.error_message or "") for one in entity.results
        ),
    )


GROWTH_APIS: Final = (
    Api(
        name="CreatePartitions",
        key=37,
        kind=CreatePartitionsRequest.kind,
        versions=(0, 3),
        doors=(Door.BROKER, Door.CONTROLLER),
        asked=_asked,
        answer=_answer,
        ask=_ask,
        answered=_answered,
    ),
)
