"""The answers of any broker to clients: the cluster, settings, APIs, and the offsets of groups."""

from collections.abc import Iterable
from typing import Any, Final

from fencepost.clusters.protocol.entities import Unreadable, Values
from fencepost.clusters.reference.codec.api import Api, Asked, ListenerType, RequestTopics, grouped
from fencepost.clusters.reference.codec.client_asks import (
    DEFAULT_CONFIG,
    configs_answered,
    configs_ask,
    metadata_answered,
    metadata_ask,
)
from fencepost.clusters.reference.codec.data_apis import fetch_versions
from fencepost.clusters.reference.codec.identifiers import id_of_uuid, uuid_of
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.levels import LEVEL_EPOCHS, METADATA_VERSION
from fencepost.clusters.reference.nodes.messages.client import (
    GROUP_STATE,
    GROUP_TYPE,
    ApiVersionsRequest,
    ApiVersionsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionMetadata,
)
from fencepost.clusters.reference.nodes.messages.data import FetchRequest

API_VERSIONS: Final = 18
API_VERSIONS_KNOWN: Final = (0, 3)

_NODE_SOFTWARE: Final = "fencepost-node"
"""The software (KIP-511) by which a broker knows another one; clients state their own."""
_CLIENTS: Final = (ListenerType.BROKER,)
_NO_OPERATIONS: Final = -(1 << 31)
"""Authorized operations: not asked for."""
_OF_TOPICS: Final = sum(1 << one for one in (3, 4, 5, 6, 7, 8, 10, 11))
_OF_CLUSTERS: Final = sum(1 << one for one in (5, 7, 8, 9, 10, 11, 12))
"""All operations there are, by KIP-430's numbers: no client is refused any here."""
_TOPIC_CONFIG: Final = 1
_STRING: Final = 2
_GROUP: Final = 0
_REFUSED: Final = Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
_NO_TRANSACTIONS: Final = "this cluster has no transactions"


def asking_versions() -> Values:
    """Return the fields by which a node asks another one what it offers."""
    return {"client_software_name": _NODE_SOFTWARE, "client_software_version": "1"}


def _versions_asked(entity: Any, correlation: int, _: RequestTopics) -> ApiVersionsRequest:
    software = getattr(entity, "client_software_name", "")
    return ApiVersionsRequest(correlation, by_node=software == _NODE_SOFTWARE)


def versions_offered(response: ApiVersionsResponse, apis: Iterable[Api]) -> Values:
    """Return the APIs that a node offers at a level, as ApiVersions states them."""
    epochs = response.level >= LEVEL_EPOCHS
    offered = {
        one.key: fetch_versions(epochs=epochs) if one.kind == FetchRequest.kind else one.versions
        for one in apis
    }
    return {
        "api_keys": [
            {"api_key": key, "min_version": lowest, "max_version": highest}
            for key, (lowest, highest) in sorted(offered.items())
        ],
        "supported_features": [
            {"name": name, "min_version": lowest, "max_version": highest}
            for name, lowest, highest in response.features
        ],
        "finalized_features_epoch": max(response.metadata_offset, 0),
        "finalized_features": [
            {
                "name": METADATA_VERSION,
                "max_version_level": response.level,
                "min_version_level": response.level,
            }
        ],
    }


def _metadata_asked(entity: Any, correlation: int, _: RequestTopics) -> MetadataRequest:
    wanted = entity.topics
    if wanted is None or (not wanted and not entity.__version__):
        topics = None
    else:
        topics = tuple(
            (one.name or "", id_of_uuid(getattr(one, "topic_id", None))) for one in wanted
        )
    allowed = bool(getattr(entity, "allow_auto_topic_creation", True))
    return MetadataRequest(correlation, topics, allow_creation=allowed)


def _metadata_answer(response: MetadataResponse, asked: Asked) -> Values:
    of_topics = _operations(asked, "include_topic_authorized_operations", _OF_TOPICS)
    nameable = asked.version < 12  # noqa: PLR2004 -- from it on a topic that was asked for by id may lack a name
    return {
        "brokers": [
            {"node_id": broker_id, "host": host, "port": port, "rack": rack}
            for broker_id, host, port, rack in response.brokers
        ],
        "cluster_id": response.cluster_id,
        "controller_id": response.controller_id,
        "topics": [
            {
                "error_code": error,
                "name": name if nameable else name or None,
                "topic_id": uuid_of(topic_id),
                "is_internal": name.startswith("__"),
                "partitions": [_partition_values(one) for one in partitions],
                "topic_authorized_operations": of_topics,
            }
            for name, topic_id, error, partitions in response.topics
        ],
        "cluster_authorized_operations": _of_cluster(asked),
    }


def _of_cluster(asked: Asked) -> int:
    return _operations(asked, "include_cluster_authorized_operations", _OF_CLUSTERS)


def _operations(asked: Asked, field: str, found: int) -> int:
    return found if getattr(asked.entity, field, False) else _NO_OPERATIONS


def _partition_values(one: PartitionMetadata) -> Values:
    return {
        "error_code": one.error,
        "partition_index": one.partition,
        "leader_id": one.leader_id,
        "leader_epoch": one.leader_epoch,
        "replica_nodes": one.replicas,
        "isr_nodes": one.isr,
        "offline_replicas": one.offline,
    }


def _cluster_answer(response: MetadataResponse, asked: Asked) -> Values:
    return {
        "error_code": response.error,
        "endpoint_type": 1,
        "cluster_id": response.cluster_id,
        "controller_id": response.controller_id,
        "brokers": [
            {"broker_id": broker_id, "host": host, "port": port, "rack": rack}
            for broker_id, host, port, rack in response.brokers
        ],
        "cluster_authorized_operations": _of_cluster(asked),
    }


def _configs_asked(entity: Any, correlation: int, _: RequestTopics) -> DescribeConfigsRequest:
    return DescribeConfigsRequest(
        correlation,
        resources=tuple(
            (
                one.resource_type,
                one.resource_name,
                None if one.configuration_keys is None else tuple(one.configuration_keys),
            )
            for one in entity.resources
        ),
    )


def _configs_answer(response: DescribeConfigsResponse, _: Asked) -> Values:
    return {
        "results": [
            {
                "error_code": error,
                "resource_type": kind,
                "resource_name": name,
                "configs": [
                    {
                        "name": setting,
                        "value": value,
                        "config_source": DEFAULT_CONFIG if is_default else _TOPIC_CONFIG,
                        "config_type": _STRING,
                    }
                    for setting, value, is_default in settings
                ],
            }
            for kind, name, error, settings in response.resources
        ]
    }


def _coordinator_asked(entity: Any, correlation: int, _: RequestTopics) -> FindCoordinatorRequest:
    groups = entity.coordinator_keys if hasattr(entity, "coordinator_keys") else (entity.key,)
    transactional = getattr(entity, "key_type", _GROUP) != _GROUP
    return FindCoordinatorRequest(correlation, tuple(groups), transactional=transactional)


def _coordinator_answer(response: FindCoordinatorResponse, asked: Asked) -> Values:
    found = [
        {
            "key": group,
            "error_code": error,
            "error_message": _NO_TRANSACTIONS if error == _REFUSED else None,
            "node_id": broker_id,
            "host": host,
            "port": port,
        }
        for group, error, broker_id, host, port in response.groups
    ]
    return {"coordinators": found} if hasattr(asked.entity, "coordinator_keys") else found[0]


def _commit_asked(entity: Any, correlation: int, _: RequestTopics) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        correlation,
        group=entity.group_id,
        offsets=tuple(
            (
                topic.name,
                one.partition_index,
                one.committed_offset,
                getattr(one, "committed_leader_epoch", -1),
                one.committed_metadata or "",
            )
            for topic in entity.topics
            for one in topic.partitions
        ),
    )


def _commit_answer(response: OffsetCommitResponse, _: Asked) -> Values:
    by_topic = grouped((name, (index, error)) for name, index, error in response.offsets)
    return {
        "topics": [
            {
                "name": name,
                "partitions": [
                    {"partition_index": index, "error_code": error} for index, error in some
                ],
            }
            for name, some in by_topic.items()
        ]
    }


def _fetch_asked(entity: Any, correlation: int, _: RequestTopics) -> OffsetFetchRequest:
    groups = getattr(entity, "groups", (entity,))
    if len(groups) != 1:
        raise Unreadable(f"offsets of {len(groups)} groups at once")
    wanted = groups[0].topics
    return OffsetFetchRequest(
        correlation,
        group=groups[0].group_id,
        partitions=None
        if wanted is None
        else tuple((topic.name, index) for topic in wanted for index in topic.partition_indexes),
    )


def _fetch_answer(response: OffsetFetchResponse, asked: Asked) -> Values:
    by_topic = grouped((name, tuple(rest)) for name, *rest in response.offsets)
    topics = [
        {
            "name": name,
            "partitions": [
                {
                    "partition_index": index,
                    "committed_offset": offset,
                    "committed_leader_epoch": leader_epoch,
                    "metadata": metadata,
                    "error_code": error,
                }
                for index, offset, leader_epoch, metadata, error in some
            ],
        }
        for name, some in by_topic.items()
    ]
    found = {"topics": topics, "error_code": response.error}
    groups = getattr(asked.entity, "groups", None)
    return found if groups is None else {"groups": [found | {"group_id": groups[0].group_id}]}


def _groups_asked(entity: Any, correlation: int, _: RequestTopics) -> ListGroupsRequest:
    return ListGroupsRequest(
        correlation,
        states=tuple(getattr(entity, "states_filter", ())),
        types=tuple(getattr(entity, "types_filter", ())),
    )


def _groups_answer(response: ListGroupsResponse, _: Asked) -> Values:
    of_each = {"protocol_type": "", "group_state": GROUP_STATE, "group_type": GROUP_TYPE}
    return {
        "error_code": response.error,
        "groups": [of_each | {"group_id": group} for group in response.groups],
    }


CLIENT_APIS: Final = (
    Api(
        name="Metadata",
        key=3,
        kind=MetadataRequest.kind,
        versions=(0, 12),
        doors=_CLIENTS,
        asked=_metadata_asked,
        answer=_metadata_answer,
        ask=metadata_ask,
        answered=metadata_answered,
    ),
    Api(
        name="DescribeCluster",
        key=60,
        kind=MetadataRequest.kind,
        versions=(0, 1),
        doors=_CLIENTS,
        asked=lambda _entity, correlation, _: MetadataRequest(correlation, ()),
        answer=_cluster_answer,
    ),
    Api(
        name="DescribeConfigs",
        key=32,
        kind=DescribeConfigsRequest.kind,
        versions=(1, 4),
        doors=_CLIENTS,
        asked=_configs_asked,
        answer=_configs_answer,
        ask=configs_ask,
        answered=configs_answered,
    ),
    Api(
        name="ApiVersions",
        key=API_VERSIONS,
        kind=ApiVersionsRequest.kind,
        versions=API_VERSIONS_KNOWN,
        doors=_CLIENTS,
        asked=_versions_asked,
        answer=lambda response, asked: versions_offered(response, asked.offered),
    ),
    Api(
        name="FindCoordinator",
        key=10,
        kind=FindCoordinatorRequest.kind,
        versions=(0, 4),
        doors=_CLIENTS,
        asked=_coordinator_asked,
        answer=_coordinator_answer,
    ),
    Api(
        name="OffsetCommit",
        key=8,
        kind=OffsetCommitRequest.kind,
        versions=(2, 8),
        doors=_CLIENTS,
        asked=_commit_asked,
        answer=_commit_answer,
    ),
    Api(
        name="OffsetFetch",
        key=9,
        kind=OffsetFetchRequest.kind,
        versions=(1, 8),
        doors=_CLIENTS,
        asked=_fetch_asked,
        answer=_fetch_answer,
    ),
    Api(
        name="ListGroups",
        key=16,
        kind=ListGroupsRequest.kind,
        versions=(0, 5),
        doors=_CLIENTS,
        asked=_groups_asked,
        answer=_groups_answer,
    ),
)
