"""Requests of clients as they ask, and answers as they read them: metadata and settings.

Clients of a running cluster are none of ours. In virtual time they are, and a rule of the wire may
answer them.
"""

from typing import Any, Final

from fencepost.clusters.protocol.entities import Values
from fencepost.clusters.reference.codec.api import RequestTopics
from fencepost.clusters.reference.codec.identifiers import id_of_uuid, uuid_of
from fencepost.clusters.reference.nodes.messages.client import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
)

DEFAULT_CONFIG: Final = 5
"""The source (`config_source`) of a setting that has its default."""


def metadata_ask(request: MetadataRequest, _: RequestTopics) -> Values:
    """Return the values of a request for metadata."""
    wanted = request.topics
    named = None if wanted is None else [_topic_values(name, one) for name, one in wanted]
    return {"topics": named, "allow_auto_topic_creation": request.allow_creation}


def _topic_values(name: str, topic_id: int) -> Values:
    return {"name": name or None, "topic_id": uuid_of(topic_id)}


def metadata_answered(
    entity: Any, request: MetadataRequest, _node: int, _: RequestTopics
) -> MetadataResponse:
    """Return what a client reads of the answer to it."""
    return MetadataResponse(
        request.correlation,
        cluster_id=entity.cluster_id or "",
        controller_id=entity.controller_id,
        brokers=tuple((one.node_id, one.host, one.port, one.rack) for one in entity.brokers),
        topics=tuple(
            (
                one.name or "",
                id_of_uuid(one.topic_id),
                one.error_code.value,
                tuple(map(_partition_answered, one.partitions)),
            )
            for one in entity.topics
        ),
    )


def _partition_answered(one: Any) -> PartitionMetadata:
    return PartitionMetadata(
        one.partition_index,
        one.error_code.value,
        one.leader_id,
        one.leader_epoch,
        tuple(one.replica_nodes),
        tuple(one.isr_nodes),
        tuple(one.offline_replicas),
    )


def configs_ask(request: DescribeConfigsRequest, _: RequestTopics) -> Values:
    """Return the values of a request for settings."""
    return {
        "resources": [
            {"resource_type": kind, "resource_name": name, "configuration_keys": names}
            for kind, name, names in request.resources
        ]
    }


def configs_answered(
    entity: Any, request: DescribeConfigsRequest, _node: int, _: RequestTopics
) -> DescribeConfigsResponse:
    """Return what a client reads of the answer to it."""
    return DescribeConfigsResponse(
        request.correlation,
        resources=tuple(
            (
                one.resource_type,
                one.resource_name,
                one.error_code.value,
                tuple(
                    (found.name, found.value, found.config_source == DEFAULT_CONFIG)
                    for found in one.configs
                ),
            )
            for one in entity.results
        ),
    )
