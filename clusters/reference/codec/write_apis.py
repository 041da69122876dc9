"""The writes of clients to the metadata: topics, settings and levels, passed on by brokers."""

from collections.abc import Sequence
from typing import Any, Final

from clusters.reference.codec.api import Api, Asked, Door, Labels, grouped, ms_of, ns_of
from clusters.reference.codec.entities import Unreadable, Values
from clusters.reference.codec.identifiers import id_of_uuid, uuid_of
from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    NewTopic,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

__all__ = ["WRITE_APIS"]

_BOTH: Final = (Door.BROKER, Door.CONTROLLER)
_SET: Final = 0
_DELETE: Final = 1
_FORWARD_TIMEOUT_MS: Final = 30_000


def _create_asked(entity: Any, correlation: int, _: Labels) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        correlation,
        topics=tuple(_new_topic(one) for one in entity.topics),
        timeout_ns=ns_of(entity.timeout),
        validate_only=entity.validate_only,
    )


def _new_topic(one: Any) -> NewTopic:
    assigned = sorted((each.partition_index, tuple(each.broker_ids)) for each in one.assignments)
    if [index for index, _ in assigned] != list(range(len(assigned))):
        raise Unreadable(f"topic {one.name}: an assignment of partitions with gaps")
    return NewTopic(
        name=one.name,
        partitions=one.num_partitions,
        replication_factor=one.replication_factor,
        assignment=tuple(replicas for _, replicas in assigned) if assigned else None,
        settings=tuple((each.name, each.value) for each in one.configs if each.value is not None),
    )


def _create_ask(request: CreateTopicsRequest, _: Labels) -> tuple[int, Values]:
    return 7, {
        "topics": [
            {
                "name": one.name,
                "num_partitions": one.partitions,
                "replication_factor": one.replication_factor,
                "assignments": [
                    {"partition_index": index, "broker_ids": replicas}
                    for index, replicas in enumerate(one.assignment or ())
                ],
                "configs": [{"name": name, "value": value} for name, value in one.settings],
            }
            for one in request.topics
        ],
        "timeout": ms_of(request.timeout_ns),
        "validate_only": request.validate_only,
    }


def _create_answer(response: CreateTopicsResponse, _: Asked) -> Values:
    return {
        "topics": [
            {
                "name": name,
                "topic_id": uuid_of(topic_id),
                "error_code": error,
                "error_message": words or None,
                "num_partitions": -1,
                "replication_factor": -1,
            }
            for name, topic_id, error, words in response.topics
        ]
    }


def _create_answered(
    entity: Any, request: CreateTopicsRequest, _node: int, _: Labels
) -> CreateTopicsResponse:
    return CreateTopicsResponse(
        request.correlation,
        topics=tuple(
            (one.name, id_of_uuid(one.topic_id), one.error_code.value, one.error_message or "")
            for one in entity.topics
        ),
    )


def _delete_asked(entity: Any, correlation: int, _: Labels) -> DeleteTopicsRequest:
    if hasattr(entity, "topic_names"):
        topics = tuple((name, -1) for name in entity.topic_names)
    else:
        topics = tuple((one.name or "", id_of_uuid(one.topic_id)) for one in entity.topics)
    return DeleteTopicsRequest(correlation, topics, ns_of(entity.timeout))


def _delete_ask(request: DeleteTopicsRequest, _: Labels) -> tuple[int, Values]:
    return 6, {
        "topics": [
            {"name": name or None, "topic_id": uuid_of(topic_id)}
            for name, topic_id in request.topics
        ],
        "timeout": ms_of(request.timeout_ns),
    }


def _delete_answer(response: DeleteTopicsResponse, asked: Asked) -> Values:
    by_name = asked.version < 6  # noqa: PLR2004 -- the first version with ids, and names that may be absent
    return {
        "responses": [
            {
                "name": name if by_name else name or None,
                "topic_id": uuid_of(topic_id),
                "error_code": error,
            }
            for name, topic_id, error in response.topics
        ]
    }


def _delete_answered(
    entity: Any, request: DeleteTopicsRequest, _node: int, _: Labels
) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        request.correlation,
        topics=tuple(
            (one.name or "", id_of_uuid(one.topic_id), one.error_code.value)
            for one in entity.responses
        ),
    )


def _configs_asked(entity: Any, correlation: int, _: Labels) -> AlterConfigsRequest:
    changes: list[tuple[int, str, str, str | None]] = []
    for resource in entity.resources:
        for one in resource.configs:
            if one.config_operation not in (_SET, _DELETE):
                raise Unreadable(f"{one.name}: a setting is set or deleted, not a list")
            value = one.value if one.config_operation == _SET else None
            changes.append((resource.resource_type, resource.resource_name, one.name, value))
    return AlterConfigsRequest(correlation, tuple(changes), entity.validate_only)


def _configs_ask(request: AlterConfigsRequest, _: Labels) -> tuple[int, Values]:
    by_resource = grouped(((kind, name), change) for kind, name, *change in request.changes)
    return 1, {
        "resources": [
            {
                "resource_type": kind,
                "resource_name": name,
                "configs": [
                    {
                        "name": setting,
                        "config_operation": _DELETE if value is None else _SET,
                        "value": value,
                    }
                    for setting, value in changes
                ],
            }
            for (kind, name), changes in by_resource.items()
        ],
        "validate_only": request.validate_only,
    }


def _configs_answer(response: AlterConfigsResponse, _: Asked) -> Values:
    return {
        "responses": [
            {
                "error_code": error,
                "error_message": words or None,
                "resource_type": kind,
                "resource_name": name,
            }
            for kind, name, error, words in response.resources
        ]
    }


def _configs_answered(
    entity: Any, request: AlterConfigsRequest, _node: int, _: Labels
) -> AlterConfigsResponse:
    return AlterConfigsResponse(
        request.correlation,
        resources=tuple(
            (one.resource_type, one.resource_name, one.error_code.value, one.error_message or "")
            for one in entity.responses
        ),
    )


def _features_asked(entity: Any, correlation: int, _: Labels) -> UpdateFeaturesRequest:
    updates = tuple((one.feature, one.max_version_level) for one in entity.feature_updates)
    return UpdateFeaturesRequest(correlation, updates)


def _features_ask(request: UpdateFeaturesRequest, _: Labels) -> tuple[int, Values]:
    return 1, {
        "timeout": _FORWARD_TIMEOUT_MS,
        "feature_updates": [
            {"feature": name, "max_version_level": level, "upgrade_type": 1}
            for name, level in request.updates
        ],
    }


def _features_answer(response: UpdateFeaturesResponse, asked: Asked) -> Values:
    results: Sequence[Values] = [
        {"feature": one.feature, "error_code": response.error, "error_message": response.words}
        for one in asked.entity.feature_updates
    ]
    return {
        "error_code": response.error,
        "error_message": response.words or None,
        "results": [] if response.error == Error.NOT_CONTROLLER else results,
    }


def _features_answered(
    entity: Any, request: UpdateFeaturesRequest, _node: int, _: Labels
) -> UpdateFeaturesResponse:
    failed = [one for one in entity.results if one.error_code.value]
    error = entity.error_code.value or (failed[0].error_code.value if failed else 0)
    return UpdateFeaturesResponse(request.correlation, error, entity.error_message or "")


WRITE_APIS: Final = (
    Api(
        name="CreateTopics",
        key=19,
        kind=CreateTopicsRequest.kind,
        versions=(2, 7),
        doors=_BOTH,
        asked=_create_asked,
        answer=_create_answer,
        ask=_create_ask,
        answered=_create_answered,
    ),
    Api(
        name="DeleteTopics",
        key=20,
        kind=DeleteTopicsRequest.kind,
        versions=(1, 6),
        doors=_BOTH,
        asked=_delete_asked,
        answer=_delete_answer,
        ask=_delete_ask,
        answered=_delete_answered,
    ),
    Api(
        name="IncrementalAlterConfigs",
        key=44,
        kind=AlterConfigsRequest.kind,
        versions=(0, 1),
        doors=_BOTH,
        asked=_configs_asked,
        answer=_configs_answer,
        ask=_configs_ask,
        answered=_configs_answered,
    ),
    Api(
        name="UpdateFeatures",
        key=57,
        kind=UpdateFeaturesRequest.kind,
        versions=(0, 1),
        doors=_BOTH,
        asked=_features_asked,
        answer=_features_answer,
        ask=_features_ask,
        answered=_features_answered,
    ),
)
"""`operator_apis` has new partitions, reassignments and elections.

At a controller's door key 57 is the dialect's BrokerRegistration in version 0, and this
UpdateFeatures in version 1: who forwards it speaks that.
"""
