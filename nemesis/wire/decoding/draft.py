"""MetadataHeartbeat and IsrChange, of the draft "Controller heartbeats", as columns of `wire`.

An incarnation id is in `broker_epoch`, those of members in `isr_epochs`: it is a broker's epoch
under another name. A heartbeat's state is in `fenced` and `shutting_down`, its name in `detail`.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from clusters.reference.nodes.errors import ERROR_NAMES
from clusters.reference.zk.states import ControlledState
from nemesis.wire.decoding.columns import Parts, partition_items
from nemesis.wire.rules import Direction

__all__ = ["EXTRACTORS"]

_STATES: Final = {int(state): state.name for state in ControlledState}
_FENCED: Final = frozenset((ControlledState.INITIAL, ControlledState.INACTIVE))


def _heartbeat_request(request: Any) -> Parts:
    return {**_sender(request), **_state(request.target_state)}, ()


def _heartbeat_response(response: Any) -> Parts:
    error = _failed(response.error_code, response.error_string)
    return {**_state(response.current_state), **error}, ()


def _isr_change_request(request: Any) -> Parts:
    items = [
        {
            **where,
            "leader_epoch": partition.leader_epoch,
            "isr": list(partition.isr_nodes),
            **_incarnations(partition),
        }
        for where, partition in partition_items(request.topics)
    ]
    return _sender(request), items


def _isr_change_response(response: Any) -> Parts:
    """The partitions stand in the request alone, in the same order."""
    items = [_failed(one.error_code, one.error_message) for one in response.results]
    return _failed(response.top_level_error_code, response.top_level_error_message), items


def _sender(request: Any) -> dict[str, Any]:
    return {"broker_id": request.broker_id, "broker_epoch": request.incarnation_id}


def _state(state: int) -> dict[str, Any]:
    return {
        "fenced": state in _FENCED,
        "shutting_down": state == ControlledState.STOPPING,
        "detail": _STATES.get(state, f"state {state}"),
    }


def _failed(code: int, words: str | None) -> dict[str, Any]:
    found = {"error": ERROR_NAMES.get(code, str(code))}
    return found if words is None else found | {"detail": words}


def _incarnations(partition: Any) -> dict[str, Any]:
    found = getattr(partition, "incarnations", None)
    return {} if found is None else {"isr_epochs": list(found)}


EXTRACTORS: Final[Mapping[tuple[str, Direction], Callable[[Any], Parts]]] = {
    ("MetadataHeartbeat", Direction.REQUEST): _heartbeat_request,
    ("MetadataHeartbeat", Direction.RESPONSE): _heartbeat_response,
    ("IsrChange", Direction.REQUEST): _isr_change_request,
    ("IsrChange", Direction.RESPONSE): _isr_change_response,
}
