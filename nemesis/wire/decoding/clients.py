"""The messages of clients as columns of `wire`.

Administrators ask for topics, reassignments, elections and features; transactional clients talk to
their coordinators and to partition leaders. ApiVersions and Produce are here, too.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fencepost.clusters.protocol.columns import (
    Parts,
    carried,
    error_name,
    failed,
    partition_items,
    topic_columns,
)
from fencepost.nemesis.wire.apis import api_name
from fencepost.nemesis.wire.rules import Direction

_LEVEL: Final = "metadata.version"


def _api_versions_request(request: Any) -> Parts:
    name = getattr(request, "client_software_name", None)
    if name is None:
        return {}, ()
    return {"detail": f"{name} {request.client_software_version}"}, ()


def _api_versions_response(response: Any) -> Parts:
    levels = {
        str(one.name): int(one.max_version_level)
        for one in getattr(response, "finalized_features", ())
    }
    finalized = ", ".join(f"{name} {level}" for name, level in levels.items())
    offered = ", ".join(f"{api_name(one.api_key)} {one.max_version}" for one in response.api_keys)
    said = f"finalized: {finalized or '-'}; offered: {offered}"
    stated = {"metadata_version": levels[_LEVEL]} if _LEVEL in levels else {}
    return {**failed(response), **stated, "detail": said}, ()


def _create_topics_request(request: Any) -> Parts:
    items = [
        {
            **topic_columns(topic),
            "detail": f"{topic.num_partitions} partitions of {topic.replication_factor} replicas, "
            f"{len(topic.assignments)} assigned",
        }
        for topic in request.topics
    ]
    return {"detail": "validate only"} if request.validate_only else {}, items


def _topics_response(response: Any) -> Parts:
    topics = response.topics if hasattr(response, "topics") else response.responses
    return {}, [
        {**topic_columns(topic), **failed(topic), "detail": getattr(topic, "error_message", None)}
        for topic in topics
    ]


def _delete_topics_request(request: Any) -> Parts:
    if hasattr(request, "topic_names"):
        return {}, [{"topic": str(name)} for name in request.topic_names]
    return {}, [topic_columns(topic) for topic in request.topics]


def _features_request(request: Any) -> Parts:
    updates = [f"{one.feature} to {one.max_version_level}" for one in request.feature_updates]
    return {"detail": ", ".join(updates)}, ()


def _features_response(response: Any) -> Parts:
    results = [
        f"{one.feature} {error_name(one.error_code)}" for one in getattr(response, "results", ())
    ]
    return {**failed(response), "detail": ", ".join(results) or response.error_message}, ()


def _envelope_request(request: Any) -> Parts:
    """Read the request that a broker forwards for a client; it has a header of its own."""
    key, version = (int.from_bytes(request.request_data[at : at + 2], signed=True) for at in (0, 2))
    return {"detail": f"carries {api_name(key)} v{version}"}, ()


def _failed(response: Any) -> Parts:
    return failed(response), ()


def _add_request(request: Any) -> Parts:
    if not hasattr(request, "transactions"):
        columns = {
            "transactional_id": request.v3_and_below_transactional_id,
            "producer_id": request.v3_and_below_producer_id,
            "producer_epoch": request.v3_and_below_producer_epoch,
        }
        return columns, [where for where, _ in partition_items(request.v3_and_below_topics)]
    items = [
        {
            **where,
            "transactional_id": one.transactional_id,
            **_producer(one),
            "detail": "verify only" if one.verify_only else None,
        }
        for one in request.transactions
        for where, _ in partition_items(one.topics)
    ]
    return {}, items


def _add_response(response: Any) -> Parts:
    if hasattr(response, "results_by_topic_v3_and_below"):
        return {}, _added(response.results_by_topic_v3_and_below)
    items = [
        {**item, "transactional_id": one.transactional_id}
        for one in response.results_by_transaction
        for item in _added(one.topic_results)
    ]
    return failed(response), items


def _end_request(request: Any) -> Parts:
    return {
        "transactional_id": request.transactional_id,
        **_producer(request),
        "committed": request.committed,
    }, ()


def _end_response(response: Any) -> Parts:
    bumped = _producer(response) if hasattr(response, "producer_id") else {}  # KIP-890
    return {**failed(response), **bumped}, ()


def _markers_request(request: Any) -> Parts:
    items = [
        {
            **where,
            **_producer(marker),
            "committed": marker.transaction_result,
            "detail": f"coordinator epoch {marker.coordinator_epoch}",
        }
        for marker in request.markers
        for where, _ in partition_items(marker.topics, field="partition_indexes")
    ]
    return {}, items


def _markers_response(response: Any) -> Parts:
    items = [
        {**where, **failed(partition), "producer_id": marker.producer_id}
        for marker in response.markers
        for where, partition in partition_items(marker.topics)
    ]
    return {}, items


def _produce_request(request: Any) -> Parts:
    items = [
        {**where, "detail": carried(partition.records)}
        for where, partition in partition_items(request.topic_data, field="partition_data")
    ]
    transactional_id = getattr(request, "transactional_id", None)
    return {"transactional_id": transactional_id, "detail": f"acks {request.acks}"}, items


def _produce_response(response: Any) -> Parts:
    items = [
        {**where, **failed(partition), "detail": f"base offset {partition.base_offset}"}
        for where, partition in partition_items(response.responses, field="partition_responses")
    ]
    return {}, items


def _producer(entity: Any) -> dict[str, Any]:
    return {"producer_id": entity.producer_id, "producer_epoch": entity.producer_epoch}


def _added(topics: Any) -> list[dict[str, Any]]:
    return [
        {**where, "error": error_name(result.partition_error_code)}
        for where, result in partition_items(topics, field="results_by_partition")
    ]


EXTRACTORS: Final[Mapping[tuple[str, Direction], Callable[[Any], Parts]]] = {
    ("ApiVersions", Direction.REQUEST): _api_versions_request,
    ("ApiVersions", Direction.RESPONSE): _api_versions_response,
    ("CreateTopics", Direction.REQUEST): _create_topics_request,
    ("CreateTopics", Direction.RESPONSE): _topics_response,
    ("DeleteTopics", Direction.REQUEST): _delete_topics_request,
    ("DeleteTopics", Direction.RESPONSE): _topics_response,
    ("UpdateFeatures", Direction.REQUEST): _features_request,
    ("UpdateFeatures", Direction.RESPONSE): _features_response,
    ("Envelope", Direction.REQUEST): _envelope_request,
    ("Envelope", Direction.RESPONSE): _failed,
    ("AddPartitionsToTxn", Direction.REQUEST): _add_request,
    ("AddPartitionsToTxn", Direction.RESPONSE): _add_response,
    ("EndTxn", Direction.REQUEST): _end_request,
    ("EndTxn", Direction.RESPONSE): _end_response,
    ("WriteTxnMarkers", Direction.REQUEST): _markers_request,
    ("WriteTxnMarkers", Direction.RESPONSE): _markers_response,
    ("Produce", Direction.REQUEST): _produce_request,
    ("Produce", Direction.RESPONSE): _produce_response,
}
