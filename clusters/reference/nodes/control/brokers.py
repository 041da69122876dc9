"""Decisions that brokers ask for: registrations, the next state by heartbeats, producer ids.

An id that is in use is refused for good. While a lease lasts whose holder may be dead, nothing is
decided yet, and the answer is to ask again (decision 40).

Source: KIP-631, "Registration and Heartbeats", the broker's state machine; KIP-730; Kafka's
`ClusterControlManager.registerBroker`, `BrokerHeartbeatManager.calculateNextBrokerState`,
`ProducerIdControlManager`.
"""

from enum import Enum
from typing import Final

from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.control.decision import Decision, DecisionView
from fencepost.clusters.reference.nodes.control.partitions import fencing
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import Registration
from fencepost.clusters.reference.nodes.messages.control import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from fencepost.clusters.reference.nodes.records import (
    MetadataRecord,
    ProducerIdsRecord,
    RegisterBrokerRecord,
)

_NOT_RUNNING: Final = BrokerState.NOT_RUNNING
_RUNNING: Final = BrokerState.RUNNING
_FENCED: Final = BrokerState.FENCED
_LEAVING: Final = BrokerState.PENDING_CONTROLLED_SHUTDOWN
_BLOCK: Final = 1_000
"""Ids that a broker gets at once."""


class HeartbeatDecision(Enum):
    """The decision that the controller has to make for a heartbeat."""

    NOTHING = "nothing"
    UNFENCE = "unfence"
    """Unfence it if it has caught up."""
    FENCE = "fence"
    LEAVE = "leave"
    """Its controlled shutdown begins."""
    LET_GO = "let go"
    """Fence it, once it leads nothing and the others know."""


_STEPS: Final[dict[tuple[int, int], HeartbeatDecision]] = {
    (_FENCED, _RUNNING): HeartbeatDecision.UNFENCE,
    (_FENCED, _FENCED): HeartbeatDecision.NOTHING,
    (_FENCED, _LEAVING): HeartbeatDecision.NOTHING,
    (_RUNNING, _RUNNING): HeartbeatDecision.NOTHING,
    (_RUNNING, _FENCED): HeartbeatDecision.FENCE,
    (_RUNNING, _LEAVING): HeartbeatDecision.LEAVE,
    (_LEAVING, _RUNNING): HeartbeatDecision.LET_GO,
    (_LEAVING, _FENCED): HeartbeatDecision.LET_GO,
    (_LEAVING, _LEAVING): HeartbeatDecision.LET_GO,
}
"""The steps by (the broker's state, the state it wants).

A broker that is let go stays so until it registers anew.
"""


def state_of(registration: Registration) -> BrokerState:
    """The state that a registration stands for."""
    if registration.in_controlled_shutdown:
        return _NOT_RUNNING if registration.fenced else _LEAVING
    return _FENCED if registration.fenced else _RUNNING


def step_for(registration: Registration, target_state: int) -> HeartbeatDecision:
    """Return what a heartbeat with this wish asks for."""
    return _STEPS.get((state_of(registration), target_state), HeartbeatDecision.NOTHING)


def registered(view: DecisionView, request: BrokerRegistrationRequest) -> Decision:
    """A new registration, fenced; the one that this incarnation has already; or why not.

    A broker whose lease ran out registers again under the epoch that it had, and gets a new one.
    Anything else from the incarnation that is registered is a request that came twice.
    """
    error = _refusal(view, request)
    if error != Error.NONE:
        return Decision(response=_response(view, request, error=error))
    known = view.image.brokers.get(request.broker_id)
    if known is not None and _repeated(known, request):
        return Decision(response=_response(view, request, epoch=known.broker_epoch))
    before = fencing(view, known) if known is not None and not known.fenced else ()
    record = _record(view, request, known, before)
    return Decision(
        response=_response(view, request, epoch=record.broker_epoch), records=(*before, record)
    )


def _refusal(view: DecisionView, request: BrokerRegistrationRequest) -> Error:
    if request.cluster_id != view.configuration.cluster_id:
        return Error.INCONSISTENT_CLUSTER_ID
    if request.broker_id < 0:
        return Error.INVALID_REQUEST
    known = view.image.brokers.get(request.broker_id)
    # Rule live_id_refused.
    if view.rules.live_id_refused and known is not None and _held(view, known, request):
        in_use = request.broker_id in view.in_use
        return Error.DUPLICATE_BROKER_REGISTRATION if in_use else Error.REQUEST_TIMED_OUT
    # Rule features_checked.
    if view.rules.features_checked and not _supports_all(view, request):
        return Error.UNSUPPORTED_VERSION
    return Error.NONE


def _held(view: DecisionView, known: Registration, request: BrokerRegistrationRequest) -> bool:
    """Return whether another incarnation that was not let go has a lease under this id."""
    alive = known.broker_id in view.leased and state_of(known) != _NOT_RUNNING
    return alive and known.incarnation_id != request.incarnation_id


def _supports_all(view: DecisionView, request: BrokerRegistrationRequest) -> bool:
    supported = {name: (least, most) for name, least, most in request.features}
    for name, level in view.image.features.items():
        least, most = supported.get(name, (0, 0))
        if not least <= level <= most:
            return False
    return True


def _repeated(known: Registration, request: BrokerRegistrationRequest) -> bool:
    same = known.incarnation_id == request.incarnation_id
    return same and known.broker_epoch != request.broker_epoch


def _record(
    view: DecisionView,
    request: BrokerRegistrationRequest,
    known: Registration | None,
    before: tuple[MetadataRecord, ...],
) -> RegisterBrokerRecord:
    # Rule epoch_from_offset: the offset of this very record.
    fresh = view.rules.epoch_from_offset or known is None
    epoch = view.offset + len(before) if fresh or known is None else known.broker_epoch
    return RegisterBrokerRecord(
        request.broker_id,
        epoch,
        request.incarnation_id,
        True,
        request.listeners,
        request.features,
        request.rack,
    )


def _response(
    view: DecisionView,
    request: BrokerRegistrationRequest,
    *,
    error: Error = Error.NONE,
    epoch: int = -1,
) -> BrokerRegistrationResponse:
    configuration = view.configuration
    return BrokerRegistrationResponse(
        request.correlation,
        error,
        configuration.node_id,
        epoch,
        configuration.lease_timeout_ns // MS,
    )


def producer_ids_allocated(view: DecisionView, request: AllocateProducerIdsRequest) -> Decision:
    """The next block; STALE_BROKER_EPOCH for a broker that is not the registered one."""
    known = view.image.brokers.get(request.broker_id)
    if known is None or known.broker_epoch != request.broker_epoch:
        error = Error.STALE_BROKER_EPOCH
        return Decision(response=AllocateProducerIdsResponse(request.correlation, error, -1, 0))
    start = view.image.next_producer_id
    # Rule producer_ids_unique.
    following = start + _BLOCK if view.rules.producer_ids_unique else start
    return Decision(
        response=AllocateProducerIdsResponse(request.correlation, Error.NONE, start, _BLOCK),
        records=(ProducerIdsRecord(request.broker_id, request.broker_epoch, following),),
    )
