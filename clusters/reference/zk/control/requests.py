"""Requests to a controller that need its decision: of clients, and IsrChange (Z09, Z10).

Those of clients are decided as in the KRaft generation, and written to ZooKeeper.

By an IsrChange the leader of partitions asks for their ISRs. It has no partition epoch: what it
asks for is held against the leader epoch alone, which every other change of the controller raises.
Two requests of one leader in one leader epoch that arrive in another order than they were sent are
so both carried out; the draft has no remedy.

Version 1 is not of the draft: it names the incarnation of each member as the leader saw it fetch,
as KIP-903 has it. Errors of partitions are the draft's, and INELIGIBLE_REPLICA of KIP-841 and 903.
"""

from collections.abc import Callable, Collection
from functools import partial
from typing import Any, Final

from fencepost.clusters.node_port.effects import SEND
from fencepost.clusters.reference.nodes.control import moves, settings, topics
from fencepost.clusters.reference.nodes.control.decision import Decision, DecisionView
from fencepost.clusters.reference.nodes.control.elections import UNCLEAN, change
from fencepost.clusters.reference.nodes.control.refusals import refused
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import PartitionImage
from fencepost.clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    ElectLeadersRequest,
    ListReassignmentsRequest,
)
from fencepost.clusters.reference.nodes.records import MetadataRecord
from fencepost.clusters.reference.zk.control.controller_state import ControllerState
from fencepost.clusters.reference.zk.control.job_queue import JobPlan
from fencepost.clusters.reference.zk.control.leaders import in_new_epoch, leaderless
from fencepost.clusters.reference.zk.control.writes import units
from fencepost.clusters.reference.zk.messages import IsrChange, IsrChangeRequest, IsrChangeResponse
from fencepost.clusters.reference.zk.rules import ZkRules

_ISR_CHANGE: Final = IsrChangeRequest.kind
_DECISIONS: Final[dict[int, Callable[[DecisionView, Any], Decision]]] = {
    CreateTopicsRequest.kind: topics.created,
    CreatePartitionsRequest.kind: topics.grown,
    AlterConfigsRequest.kind: settings.altered,
    AlterReassignmentsRequest.kind: moves.reassigned,
    ElectLeadersRequest.kind: moves.elected,
}
DECIDED: Final = frozenset({_ISR_CHANGE, ListReassignmentsRequest.kind, *_DECISIONS})
"""The kinds that `ClientRequests` takes."""
_Known = Callable[[int], int]
"""The highest incarnation id known of a broker."""


class ClientRequests:
    """The requests of one controller epoch."""

    __slots__ = ("_parts",)

    def __init__(self, parts: ControllerState) -> None:
        self._parts = parts

    async def take(self, source: int, request: Any) -> None:
        """Take one of DECIDED: it is answered once what was decided is written."""
        parts = self._parts
        response = await parts.answer(source, request, partial(self._plan, request))
        parts.coroutines.effects.append((SEND, source, response))
        if request.kind == AlterConfigsRequest.kind and _may_elect(request):
            await parts.decided(lambda: leaderless(parts.context.view()))

    def _plan(self, request: Any) -> JobPlan:
        context = self._parts.context
        view = context.view()
        if request.kind == ListReassignmentsRequest.kind:
            return JobPlan([], moves.reassignments(context.image, request))
        if request.kind == _ISR_CHANGE:
            rules, known = self._parts.situation.rules, self._parts.states.incarnation_of
            gone = frozenset(context.deleting)
            decision = _isrs_changed(view, rules, request, incarnation_of=known, gone=gone)
            return JobPlan(units(context, decision.records), decision.response)
        undecided = {view.image.names[topic_id] for topic_id, _ in context.without_state()}
        grows = request.kind == CreatePartitionsRequest.kind
        if grows and any(one.name in undecided for one in request.topics):
            # Its partitions are counted by their states.
            return JobPlan([], refused(request, Error.LEADER_NOT_AVAILABLE, -1))
        decision = _DECISIONS[request.kind](view, request)
        return JobPlan(units(context, in_new_epoch(view, decision.records)), decision.response)


def _may_elect(request: AlterConfigsRequest) -> bool:
    """Return whether an unclean election may be allowed from here on."""
    return any(change[2:] == (UNCLEAN, "true") for change in request.changes)


def _isrs_changed(
    view: DecisionView,
    rules: ZkRules,
    request: IsrChangeRequest,
    *,
    incarnation_of: _Known,
    gone: Collection[str],
) -> Decision:
    """The ISRs that may be as asked for, and for each partition why not.

    `gone`: topics that are being deleted, of which nothing is written any more.
    """
    known = incarnation_of(request.broker_id)
    # Rule isr_change_of_old_incarnation_refused.
    if request.incarnation_id != known and rules.isr_change_of_old_incarnation_refused:
        words = f"registered incarnation_id={known} request incarnation_id={request.incarnation_id}"
        error = Error.INVALID_INCARNATION_ID
        return Decision(response=IsrChangeResponse(request.correlation, error, words, ()))
    records: dict[tuple[int, int], MetadataRecord] = {}
    results: list[tuple[int, str | None]] = []
    for topic, asked in request.topics:
        for one in asked:
            key = (view.image.topics.get(topic, -1), one.partition)
            old = None if topic in gone else view.image.partitions.get(key)
            error, words = _refusal(rules, request.broker_id, one, old)
            if old is not None and not error:
                error, words = _ineligible(view, rules, one, incarnation_of)
                if error and set(one.isr) == set(old.isr):
                    # It is so by a try whose answer was lost: the sender must not go back.
                    error = Error.INVALID_UPDATE_VERSION
            if key in records:
                error, words = Error.INVALID_REQUEST, "the partition is named twice"
            results.append((error, words or None))
            if old is not None and not error:
                record = change(view, key, old, isr=one.isr, recovering=False)
                records |= {} if record is None else {key: record}
    response = IsrChangeResponse(request.correlation, Error.NONE, None, tuple(results))
    return Decision(response=response, records=tuple(records.values()))


def _refusal(
    rules: ZkRules, sender: int, one: IsrChange, old: PartitionImage | None
) -> tuple[Error, str]:
    """Return why a partition's ISR may not be as asked for, whoever its members are."""
    if old is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION, "there is no such partition"
    # Rule isr_change_of_leader_alone.
    is_leader = sender == old.leader and one.leader_epoch == old.leader_epoch
    if not is_leader and rules.isr_change_of_leader_alone:
        words = f"leader={old.leader} leader_epoch={old.leader_epoch}"
        return Error.NOT_LEADER_OR_FOLLOWER, f"{words} request leader_epoch={one.leader_epoch}"
    # Rule empty_isr_refused.
    lacks = not one.isr or (old.leader >= 0 and old.leader not in one.isr)
    if lacks and rules.empty_isr_refused:
        return Error.INVALID_REQUEST, f"expected an ISR with leader {old.leader}, found {one.isr}"
    if len(set(one.isr)) < len(one.isr) or not set(one.isr) <= set(old.replicas):
        return Error.INVALID_REQUEST, f"expected some of {old.replicas}, found {one.isr}"
    return Error.NONE, ""


def _ineligible(
    view: DecisionView, rules: ZkRules, one: IsrChange, incarnation_of: _Known
) -> tuple[Error, str]:
    """Return why a member may not be one: now, or in the incarnation that the leader means."""
    for index, broker_id in enumerate(one.isr):
        known = view.image.brokers.get(broker_id)
        able = known is not None and not known.fenced and not known.in_controlled_shutdown
        # Rule members_eligible.
        if not able and rules.members_eligible:
            return Error.INELIGIBLE_REPLICA, f"broker {broker_id} is not active"
        meant = one.incarnations[index] if one.incarnations else -1
        # Rule member_incarnations_checked.
        if rules.member_incarnations_checked and meant not in (-1, incarnation_of(broker_id)):
            words = f"broker {broker_id} incarnation_id={incarnation_of(broker_id)}"
            return Error.INELIGIBLE_REPLICA, f"{words} request incarnation_id={meant}"
    return Error.NONE, ""
