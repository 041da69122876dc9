"""The messages between brokers and their controller, of every generation, as columns of `wire`.

Those that our nodes speak, too, have tables (`clusters.protocol.rpcs`); the readers of Kafka's own
are here.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from fencepost.clusters.protocol.columns import Parts, failed, partition_items, uuid_text
from fencepost.nemesis.wire.rules import Direction


def _registration_request(request: Any) -> Parts:
    endpoints = ", ".join(f"{one.name}://{one.host}:{one.port}" for one in request.listeners)
    columns = {
        "broker_id": request.broker_id,
        "incarnation_id": uuid_text(request.incarnation_id),
        "detail": f"{endpoints}; {_features(request.features)}",
    }
    previous = getattr(request, "previous_broker_epoch", -1)
    if previous >= 0:
        columns["detail"] += f"; previous broker epoch {previous}"
    return columns, ()


def _registration_response(response: Any) -> Parts:
    return {**failed(response), "broker_epoch": response.broker_epoch}, ()


def _heartbeat_request(request: Any) -> Parts:
    columns = {
        "broker_id": request.broker_id,
        "broker_epoch": request.broker_epoch,
        "fetch_offset": request.current_metadata_offset,
        "fenced": request.want_fence,
        "shutting_down": request.want_shut_down,
    }
    offline = [str(uuid_text(one)) for one in getattr(request, "offline_log_dirs", ())]
    if offline:
        columns["detail"] = f"offline directories: {', '.join(offline)}"
    return columns, ()


def _heartbeat_response(response: Any) -> Parts:
    return {
        **failed(response),
        "fenced": response.is_fenced,
        "shutting_down": response.should_shut_down,
        "detail": "caught up" if response.is_caught_up else "not caught up",
    }, ()


def _controller_registration_request(request: Any) -> Parts:
    endpoints = ", ".join(f"{one.name}://{one.host}:{one.port}" for one in request.listeners)
    return {
        "broker_id": request.controller_id,
        "incarnation_id": uuid_text(request.incarnation_id),
        "detail": f"{endpoints}; {_features(request.features)}",
    }, ()


def _assign_request(request: Any) -> Parts:
    columns = {"broker_id": request.broker_id, "broker_epoch": request.broker_epoch}
    items = [
        {**where, "detail": f"directory {uuid_text(directory.id_)}"}
        for directory in request.directories
        for where, _ in partition_items(directory.topics)
    ]
    return columns, items


def _assign_response(response: Any) -> Parts:
    items = [
        {**where, **failed(partition), "detail": f"directory {uuid_text(directory.id_)}"}
        for directory in response.directories
        for where, partition in partition_items(directory.topics)
    ]
    return failed(response), items


def _about_a_broker(request: Any) -> Parts:
    columns = {"broker_id": request.broker_id}
    if hasattr(request, "broker_epoch"):
        columns["broker_epoch"] = request.broker_epoch
    return columns, ()


def _failed(response: Any) -> Parts:
    return failed(response), ()


def _features(features: Any) -> str:
    return ", ".join(
        f"{one.name} {one.min_supported_version}-{one.max_supported_version}" for one in features
    )


EXTRACTORS: Final[Mapping[tuple[str, Direction], Callable[[Any], Parts]]] = {
    ("BrokerRegistration", Direction.REQUEST): _registration_request,
    ("BrokerRegistration", Direction.RESPONSE): _registration_response,
    ("BrokerHeartbeat", Direction.REQUEST): _heartbeat_request,
    ("BrokerHeartbeat", Direction.RESPONSE): _heartbeat_response,
    ("ControllerRegistration", Direction.REQUEST): _controller_registration_request,
    ("ControllerRegistration", Direction.RESPONSE): _failed,
    ("AssignReplicasToDirs", Direction.REQUEST): _assign_request,
    ("AssignReplicasToDirs", Direction.RESPONSE): _assign_response,
    ("UnregisterBroker", Direction.REQUEST): _about_a_broker,
    ("UnregisterBroker", Direction.RESPONSE): _failed,
}
