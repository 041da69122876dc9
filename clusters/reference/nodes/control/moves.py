"""The requests of administrators about partitions: reassignments and elections of leaders.

Source: KIP-455 (reassignments), KIP-460 (ElectLeaders); Kafka's `ReplicationControlManager`.
"""

from collections.abc import Iterator

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.control.decision import Decision, DecisionView
from fencepost.clusters.reference.nodes.control.elections import (
    NOBODY,
    Election,
    Electorate,
    elect,
    unclean,
)
from fencepost.clusters.reference.nodes.control.reassignment import begun, cancelled, in_progress
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import MetadataImage, PartitionImage
from fencepost.clusters.reference.nodes.messages.control import (
    AlterReassignmentsRequest,
    AlterReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListReassignmentsRequest,
    ListReassignmentsResponse,
)
from fencepost.clusters.reference.nodes.records import MetadataRecord


def reassigned(view: DecisionView, request: AlterReassignmentsRequest) -> Decision:
    """Decide which partitions are set moving, and which stay."""
    records: dict[PartitionKey, MetadataRecord] = {}
    answers: list[tuple[str, int, int, str]] = []
    for topic, index, wanted in request.moves:
        key = (view.image.topics.get(topic, -1), index)
        old = view.image.partitions.get(key)
        found = _moved(view, key, old, wanted) if key not in records else Error.INVALID_REQUEST
        error = found if isinstance(found, Error) else Error.NONE
        answers.append((topic, index, error, "" if error == Error.NONE else error.name))
        if found is not None and not isinstance(found, Error):
            records[key] = found
    response = AlterReassignmentsResponse(request.correlation, Error.NONE, tuple(answers))
    return Decision(response=response, records=tuple(records.values()))


def _moved(
    view: DecisionView,
    key: PartitionKey,
    old: PartitionImage | None,
    wanted: tuple[int, ...] | None,
) -> MetadataRecord | Error | None:
    if old is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return cancelled(view, key, old) if wanted is None else begun(view, key, old, wanted)


def reassignments(
    image: MetadataImage, request: ListReassignmentsRequest
) -> ListReassignmentsResponse:
    """The partitions that move."""
    found = tuple(
        (topic, key[1], old.replicas, old.adding, old.removing)
        for topic, key, old in _named(image, request.partitions)
        if old is not None and in_progress(old)
    )
    return ListReassignmentsResponse(request.correlation, Error.NONE, found)


def _named(
    image: MetadataImage, partitions: tuple[tuple[str, int], ...] | None
) -> Iterator[tuple[str, PartitionKey, PartitionImage | None]]:
    """The partitions of a request; None: all of them."""
    if partitions is None:
        for key, old in image.partitions.items():
            yield image.names.get(key[0], ""), key, old
        return
    for topic, index in dict.fromkeys(partitions):
        key = (image.topics.get(topic, -1), index)
        yield topic, key, image.partitions.get(key)


def elected(view: DecisionView, request: ElectLeadersRequest) -> Decision:
    """Leaders are elected where it is needed. Asked for all, only what was needed is told of."""
    records: list[MetadataRecord] = []
    answers: list[tuple[str, int, int]] = []
    electorate = Electorate(view=view)
    for topic, key, old in _named(view.image, request.partitions):
        outcome = _outcome(electorate, key, old, uncleanly=request.unclean)
        if isinstance(outcome, Election):
            assert old is not None
            record = elect(view, key, old, outcome)
            records += [] if record is None else [record]
        if outcome != Error.ELECTION_NOT_NEEDED or request.partitions is not None:
            error = Error.NONE if isinstance(outcome, Election) else outcome
            answers.append((topic, key[1], error))
    response = ElectLeadersResponse(request.correlation, Error.NONE, tuple(answers))
    return Decision(response=response, records=tuple(records))


def _outcome(
    electorate: Electorate, key: PartitionKey, old: PartitionImage | None, *, uncleanly: bool
) -> Election | Error:
    if old is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    return _any_live(electorate, key, old) if uncleanly else _preferred(electorate, old)


def _preferred(electorate: Electorate, old: PartitionImage) -> Election | Error:
    wanted = old.replicas[0]
    if old.leader == wanted:
        return Error.ELECTION_NOT_NEEDED
    if wanted not in old.isr or not electorate.may_lead(wanted):
        return Error.PREFERRED_LEADER_NOT_AVAILABLE
    return Election(leader=wanted, isr=old.isr)


def _any_live(electorate: Electorate, key: PartitionKey, old: PartitionImage) -> Election | Error:
    if old.leader != NOBODY:
        return Error.ELECTION_NOT_NEEDED
    clean = electorate.elected(key, old, old.isr)
    if clean.leader != NOBODY:
        return clean
    for replica in old.replicas:
        if electorate.may_lead(replica):
            return unclean(replica)
    return Error.ELIGIBLE_LEADERS_NOT_AVAILABLE


def preferred_elections(view: DecisionView) -> Iterator[MetadataRecord]:
    """An election in each partition that another one leads than the preferred replica, which can.

    Kafka's automatic rebalancing of leaders.
    """
    electorate = Electorate(view=view)
    for key, old in view.image.partitions.items():
        outcome = _preferred(electorate, old)
        if isinstance(outcome, Election) and old.leader != NOBODY:
            record = elect(view, key, old, outcome)
            assert record is not None, (key, old)
            yield record
