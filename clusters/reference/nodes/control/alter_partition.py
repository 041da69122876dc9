"""AlterPartition: the leader of a partition proposes its ISR.

Versions 2 and 3 differ in that 3 has the broker epoch of each member. The checks and their order
are those of Kafka's `ReplicationControlManager.validateAlterPartitionData`.

Source: KIP-497, KIP-704 (recovery), KIP-841 (eligible members), KIP-903 (their epochs).
"""

from dataclasses import replace

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.control.decision import Decision, DecisionView
from fencepost.clusters.reference.nodes.control.elections import change
from fencepost.clusters.reference.nodes.control.reassignment import Completion, completion
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import PartitionImage, changed
from fencepost.clusters.reference.nodes.messages.control import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from fencepost.clusters.reference.nodes.records import PartitionChangeRecord


def altered(view: DecisionView, request: AlterPartitionRequest) -> Decision:
    """The ISRs that may be as proposed, and for each partition its new version or why not."""
    sender = view.image.brokers.get(request.broker_id)
    stale = sender is None or sender.broker_epoch != request.broker_epoch
    # Rule sender_epoch_compared.
    if stale and view.rules.sender_epoch_compared:
        response = AlterPartitionResponse(request.correlation, Error.STALE_BROKER_EPOCH, ())
        return Decision(response=response)
    records: list[PartitionChangeRecord] = []
    items: list[AlterPartitionItem] = []
    seen: set[PartitionKey] = set()
    for item in request.items:
        error = _refusal(view, request, item, stale=stale)
        if item.key in seen:
            error = Error.INVALID_REQUEST
        seen.add(item.key)
        answer, record = (
            (replace(item, error=error), None) if error else _accepted(view, request, item)
        )
        items.append(answer)
        if record is not None:
            records.append(record)
    response = AlterPartitionResponse(request.correlation, Error.NONE, tuple(items))
    return Decision(response=response, records=tuple(records))


def _refusal(
    view: DecisionView, request: AlterPartitionRequest, item: AlterPartitionItem, *, stale: bool
) -> Error:
    old = view.image.partitions.get(item.key)
    if old is None:
        return Error.UNKNOWN_TOPIC_ID
    # A dead incarnation's versions are older than the live one's. A controller that skips this
    # check mistakes the dead incarnation's request for the live one's.
    late = Error.NONE if stale else _late(view, request, item, old)
    return late or _wrong(item, old) or _ineligible(view, item)


def _late(
    view: DecisionView,
    request: AlterPartitionRequest,
    item: AlterPartitionItem,
    old: PartitionImage,
) -> Error:
    """Return an error unless the sender speaks of the partition as it is."""
    rules = view.rules
    if item.leader_epoch < old.leader_epoch:
        # Rule leader_epoch_compared. A controller that takes the word of a deposed leader cannot
        # compare more.
        return Error.FENCED_LEADER_EPOCH if rules.leader_epoch_compared else Error.NONE
    # Rule partition_epoch_compared.
    version = item.partition_epoch if rules.partition_epoch_compared else old.partition_epoch
    if item.leader_epoch > old.leader_epoch or version > old.partition_epoch:
        # The sender knows more: there is a newer controller.
        return Error.NOT_CONTROLLER
    # Rule only_leader_alters.
    if request.broker_id != old.leader and rules.only_leader_alters:
        return Error.INVALID_REQUEST
    return Error.INVALID_UPDATE_VERSION if version < old.partition_epoch else Error.NONE


def _wrong(item: AlterPartitionItem, old: PartitionImage) -> Error:
    """Return an error unless it is an ISR at all, of this partition under this leader.

    A leader that recovers is alone in the ISR, and one that has recovered does not recover again.
    """
    isr = item.isr
    sound = (
        isr
        and len(set(isr)) == len(isr)
        and set(isr) <= set(old.replicas)
        and (old.leader in isr or old.leader < 0)
        and len(item.isr_epochs) in (0, len(isr))
        and (not item.recovering or (old.recovering and len(isr) == 1))
    )
    return Error.NONE if sound else Error.INVALID_REQUEST


def _ineligible(view: DecisionView, item: AlterPartitionItem) -> Error:
    """Return an error if a proposed member may not be one: now, or in the incarnation meant."""
    for index, broker_id in enumerate(item.isr):
        known = view.image.brokers.get(broker_id)
        able = known is not None and not known.fenced and not known.in_controlled_shutdown
        # Rule members_eligible.
        if not able and view.rules.members_eligible:
            return Error.INELIGIBLE_REPLICA
        epoch = item.isr_epochs[index] if item.isr_epochs else -1
        stale = epoch >= 0 and (known is None or known.broker_epoch != epoch)
        # Rule member_epochs_checked.
        if stale and view.rules.member_epochs_checked:
            return Error.INELIGIBLE_REPLICA
    return Error.NONE


def _accepted(
    view: DecisionView, request: AlterPartitionRequest, item: AlterPartitionItem
) -> tuple[AlterPartitionItem, PartitionChangeRecord | None]:
    """The answer and the record, if it changes anything.

    A change that completes a reassignment may take the leadership away from the sender, which then
    has to learn it from the metadata.
    """
    old = view.image.partitions[item.key]
    completed = completion(view, old, isr=item.isr)
    record = _record(view, item, old, completed)
    new = old if record is None else changed(old, record)
    moved = completed is not None and new.leader != request.broker_id
    answer = AlterPartitionItem(
        item.key,
        new.leader_epoch,
        new.partition_epoch,
        new.isr,
        (),
        Error.NEW_LEADER_ELECTED if moved else Error.NONE,
        new.leader,
        new.recovering,
    )
    return answer, record


def _record(
    view: DecisionView, item: AlterPartitionItem, old: PartitionImage, completed: Completion | None
) -> PartitionChangeRecord | None:
    if completed is None:
        return change(view, item.key, old, isr=item.isr, recovering=item.recovering)
    return change(
        view,
        item.key,
        old,
        isr=completed.isr,
        leader=completed.leader,
        replicas=completed.replicas,
        adding=(),
        removing=(),
        recovering=item.recovering,
    )
