"""What clients ask of a controller: decided as in the KRaft generation, written to ZooKeeper."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from clusters.node_port.effects import SEND, Effects
from clusters.reference.nodes.control import moves, settings, topics
from clusters.reference.nodes.control.decision import Decision, DecisionView
from clusters.reference.nodes.control.elections import UNCLEAN
from clusters.reference.nodes.control.refusals import refused
from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
)
from clusters.reference.zk.control.isr_changes import isrs_changed
from clusters.reference.zk.control.leaders import in_new_epoch, leaderless
from clusters.reference.zk.control.parts import Parts
from clusters.reference.zk.control.refusals import refuse
from clusters.reference.zk.control.work import Job, Plan
from clusters.reference.zk.control.writes import units
from clusters.reference.zk.messages import IsrChangeRequest

__all__ = ["DECIDED", "Requests"]

_ISR_CHANGE: Final = IsrChangeRequest.kind
_DECISIONS: Final[dict[int, Callable[[DecisionView, Any], Decision]]] = {
    CreateTopicsRequest.kind: topics.created,
    CreatePartitionsRequest.kind: topics.grown,
    AlterConfigsRequest.kind: settings.altered,
    AlterReassignmentsRequest.kind: moves.reassigned,
    ElectLeadersRequest.kind: moves.elected,
}
DECIDED: Final = frozenset({_ISR_CHANGE, ListReassignmentsRequest.kind, *_DECISIONS})
"""The kinds that `Requests` takes."""


class Requests:
    """The requests of one controller epoch."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def take(self, now: int, source: int, request: Any, effects: Effects) -> None:
        """Take one of DECIDED: it is answered once what was decided is written."""
        finish = partial(self._finish, source, request)
        job = Job(partial(self._plan, request), finish, partial(refuse, source, request))
        self._parts.work.add(now, job, effects)

    def _plan(self, request: Any) -> Plan:
        context = self._parts.context
        view = context.view()
        if request.kind == ListReassignmentsRequest.kind:
            return Plan([], moves.reassignments(context.image, request))
        if request.kind == _ISR_CHANGE:
            rules, known = self._parts.situation.rules, self._parts.states.incarnation_of
            decision = isrs_changed(view, rules, request, incarnation_of=known)
            return Plan(units(context, decision.records), decision.response)
        undecided = {view.image.names[topic_id] for topic_id, _ in context.without_state()}
        grows = request.kind == CreatePartitionsRequest.kind
        if grows and any(one.name in undecided for one in request.topics):
            # Its partitions are counted by their states.
            return Plan([], refused(request, Error.LEADER_NOT_AVAILABLE, -1))
        decision = _DECISIONS[request.kind](view, request)
        return Plan(units(context, in_new_epoch(view, decision.records)), decision.response)

    def _finish(self, source: int, request: Any, now: int, response: Any, effects: Effects) -> None:
        effects.append((SEND, source, response))
        if request.kind == AlterConfigsRequest.kind and _may_elect(request):
            context = self._parts.context
            self._parts.decide(now, lambda: leaderless(context.view()), effects)


def _may_elect(request: AlterConfigsRequest) -> bool:
    """Return whether an unclean election may be allowed from here on."""
    return any(change[2:] == (UNCLEAN, "true") for change in request.changes)
