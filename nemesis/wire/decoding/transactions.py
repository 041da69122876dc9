"""The messages of transactional clients, their coordinators and partition leaders; and Produce."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from nemesis.wire.decoding.columns import Parts, failed, partition_items
from nemesis.wire.error_codes import error_name
from nemesis.wire.rules import Direction

__all__ = ["EXTRACTORS"]


def _init_request(request: Any) -> Parts:
    columns = {"transactional_id": request.transactional_id}
    if hasattr(request, "producer_id"):
        columns |= _producer(request)
    return columns, ()


def _init_response(response: Any) -> Parts:
    return {**failed(response), **_producer(response)}, ()


def _producer(entity: Any) -> dict[str, Any]:
    return {"producer_id": entity.producer_id, "producer_epoch": entity.producer_epoch}


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


def _added(topics: Any) -> list[dict[str, Any]]:
    return [
        {**where, "error": error_name(result.partition_error_code)}
        for where, result in partition_items(topics, field="results_by_partition")
    ]


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
        {**where, "detail": f"{len(partition.records or b'')} B of records"}
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


EXTRACTORS: Final[Mapping[tuple[str, Direction], Callable[[Any], Parts]]] = {
    ("InitProducerId", Direction.REQUEST): _init_request,
    ("InitProducerId", Direction.RESPONSE): _init_response,
    ("AddPartitionsToTxn", Direction.REQUEST): _add_request,
    ("AddPartitionsToTxn", Direction.RESPONSE): _add_response,
    ("EndTxn", Direction.REQUEST): _end_request,
    ("EndTxn", Direction.RESPONSE): _end_response,
    ("WriteTxnMarkers", Direction.REQUEST): _markers_request,
    ("WriteTxnMarkers", Direction.RESPONSE): _markers_response,
    ("Produce", Direction.REQUEST): _produce_request,
    ("Produce", Direction.RESPONSE): _produce_response,
}
