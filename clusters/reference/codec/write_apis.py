"""The writes of clients to the metadata: topics, settings and levels, passed on by brokers."""

from dataclasses import replace
from typing import Any, Final

from fencepost.clusters.protocol.entities import Unreadable, Values
from fencepost.clusters.protocol.rpc import RpcTable
from fencepost.clusters.reference.codec.api import Asked, ListenerType, RequestTopics
from fencepost.clusters.reference.codec.identifiers import id_of_uuid
from fencepost.clusters.reference.codec.layout import (
    DURATION,
    ERROR,
    NAME,
    TOPIC_ID,
    Conversion,
    Part,
    always,
    by_topic,
    each,
    field,
    read_only,
)
from fencepost.clusters.reference.codec.tables import between_nodes
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.messages.control import (
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

_BOTH: Final = (ListenerType.BROKER, ListenerType.CONTROLLER)
_SET: Final = 0
_DELETE: Final = 1
_FORWARD_TIMEOUT_MS: Final = 30_000


def _read_assignment(entity: Any, found: dict[str, Any], _: RequestTopics) -> None:
    stated = sorted((one.partition_index, tuple(one.broker_ids)) for one in entity.assignments)
    if [index for index, _ in stated] != list(range(len(stated))):
        raise Unreadable(f"topic {entity.name}: an assignment of partitions with gaps")
    found["assignment"] = tuple(replicas for _, replicas in stated) or None


def _write_assignment(found: dict[str, Any], values: dict[str, Any], _: RequestTopics) -> None:
    values["assignments"] = [
        {"partition_index": index, "broker_ids": replicas}
        for index, replicas in enumerate(found["assignment"] or ())
    ]


def _read_topics(entity: Any, found: dict[str, Any], _: RequestTopics) -> None:
    if hasattr(entity, "topic_names"):
        found["topics"] = tuple((name, -1) for name in entity.topic_names)
    else:
        found["topics"] = tuple((one.name or "", id_of_uuid(one.topic_id)) for one in entity.topics)


def _read_change(entity: Any, found: dict[str, Any], _: RequestTopics) -> None:
    if entity.config_operation not in (_SET, _DELETE):
        raise Unreadable(f"{entity.name}: a setting is set or deleted, not a list")
    found["value"] = entity.value if entity.config_operation == _SET else None


def _write_change(found: dict[str, Any], values: dict[str, Any], _: RequestTopics) -> None:
    values["config_operation"] = _DELETE if found["value"] is None else _SET
    values["value"] = found["value"]


def _first_error(entity: Any, found: dict[str, Any]) -> int:
    """Return the error of all, or the first of one feature."""
    of_features = (one.error_code.value for one in entity.results)
    return found["error"] or next(filter(None, of_features), 0)


_ERROR: Final = field("error", "error_code", ERROR)
_WORDS: Final = field("words", "error_message", NAME)
_NAMED: Final = (field("name", way=NAME), field("topic_id", way=TOPIC_ID))
_RESOURCE: Final = (field("kind", "resource_type"), field("resource", "resource_name"))
_STATED: Final = each(field("name"), field("value"))
_SETTINGS: Final = Conversion(
    lambda configs, labels: _STATED.read((one for one in configs if one.value is not None), labels),
    _STATED.write,
)

_CREATE_TOPICS: Final = between_nodes(
    RpcTable(
        name="CreateTopics",
        asks=(
            field(
                "topics",
                way=each(
                    field("name"),
                    field("partitions", "num_partitions"),
                    field("replication_factor"),
                    Part(("assignment",), _read_assignment, _write_assignment),
                    field("settings", "configs", _SETTINGS),
                    into=NewTopic,
                ),
            ),
            field("timeout_ns", "timeout", DURATION),
            field("validate_only"),
        ),
        answers=(
            field(
                "topics",
                way=each(*_NAMED, _ERROR, _WORDS, always(num_partitions=-1, replication_factor=-1)),
            ),
        ),
    ),
    (2, 7),
    _BOTH,
    request=CreateTopicsRequest,
    response=CreateTopicsResponse,
)
_DELETE_TOPICS: Final = between_nodes(
    RpcTable(
        name="DeleteTopics",
        asks=(
            Part(("topics",), _read_topics, field("topics", way=each(*_NAMED)).write),
            field("timeout_ns", "timeout", DURATION),
        ),
        answers=(field("topics", "responses", each(*_NAMED, _ERROR)),),
    ),
    (1, 6),
    _BOTH,
    request=DeleteTopicsRequest,
    response=DeleteTopicsResponse,
)
_ALTER_CONFIGS: Final = between_nodes(
    RpcTable(
        name="IncrementalAlterConfigs",
        asks=(
            field(
                "changes",
                "resources",
                by_topic(
                    _RESOURCE,
                    "configs",
                    field("name"),
                    Part(("value",), _read_change, _write_change),
                ),
            ),
            field("validate_only"),
        ),
        answers=(field("resources", "responses", each(*_RESOURCE, _ERROR, _WORDS)),),
    ),
    (0, 1),
    _BOTH,
    request=AlterConfigsRequest,
    response=AlterConfigsResponse,
)
_FEATURES: Final = between_nodes(
    RpcTable(
        name="UpdateFeatures",
        asks=(
            always(timeout=_FORWARD_TIMEOUT_MS),
            field(
                "updates",
                "feature_updates",
                each(field("feature"), field("level", "max_version_level"), always(upgrade_type=1)),
            ),
        ),
        answers=(
            _ERROR,
            _WORDS,
            read_only("error", _first_error),
        ),
    ),
    (0, 1),
    _BOTH,
    request=UpdateFeaturesRequest,
    response=UpdateFeaturesResponse,
)


def _updated(response: UpdateFeaturesResponse, asked: Asked) -> Values:
    """Write an answer, which says the one error of each feature, too."""
    error = response.error
    updates = () if error == Error.NOT_CONTROLLER else asked.entity.feature_updates
    results = [
        {"feature": one.feature, "error_code": error, "error_message": response.words}
        for one in updates
    ]
    return {**_FEATURES.answer(response, asked), "results": results}


WRITE_APIS: Final = (
    _CREATE_TOPICS,
    _DELETE_TOPICS,
    _ALTER_CONFIGS,
    replace(_FEATURES, answer=_updated),
)
"""`operator_apis` has new partitions, reassignments and elections.

At a controller's door key 57 is the dialect's BrokerRegistration in version 0, and this
UpdateFeatures in version 1: who forwards it speaks that.
"""
