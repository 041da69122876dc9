"""The answers to requests that are not decided: not by this broker, or not at all."""

from collections.abc import Callable
from typing import Any, Final

from fencepost.clusters.node_port.effects import CLOSE, SEND, Effects
from fencepost.clusters.protocol.controlled_states import ControlledState
from fencepost.clusters.reference.nodes.control.refusals import refused
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.zk.messages import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    IsrChangeRequest,
    IsrChangeResponse,
    MetadataHeartbeatRequest,
    MetadataHeartbeatResponse,
)


def refuse(source: int, request: Any, error: Error | None, effects: Effects) -> None:
    """Answer a request that was not decided; None: it may have been, so its connection closes."""
    if error is None:
        effects.append((CLOSE, source))
        return
    own = _REFUSALS.get(request.kind)
    answer = refused(request, error, -1) if own is None else own(request, error)
    effects.append((SEND, source, answer))


def _heartbeat(request: MetadataHeartbeatRequest, error: Error) -> MetadataHeartbeatResponse:
    return MetadataHeartbeatResponse(
        request.correlation, error, error.name, ControlledState.INITIAL
    )


def _isr_change(request: IsrChangeRequest, error: Error) -> IsrChangeResponse:
    return IsrChangeResponse(request.correlation, error, error.name, ())


def _stop(request: ControlledShutdownRequest, error: Error) -> ControlledShutdownResponse:
    return ControlledShutdownResponse(request.correlation, error, ())


_REFUSALS: Final[dict[int, Callable[[Any, Error], Any]]] = {
    MetadataHeartbeatRequest.kind: _heartbeat,
    IsrChangeRequest.kind: _isr_change,
    ControlledShutdownRequest.kind: _stop,
}
