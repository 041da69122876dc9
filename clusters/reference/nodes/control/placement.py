"""The placement of new partitions' replicas: as the request says, or spread over the brokers.

Brokers stand in a ring, racks alternating; partition by partition one goes on by one, so that
leaders and replicas are spread evenly. The ring's beginning comes from where the decision stands in
the log: the same log places the same way.

Source: the idea of Kafka's `StripedReplicaPlacer`, without its draws.
"""

from collections.abc import Sequence

from fencepost.clusters.reference.nodes.control.decision import DecisionView
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import Registration
from fencepost.clusters.reference.nodes.records import PartitionRecord

Assignment = tuple[tuple[int, ...], ...]
"""The replicas of each partition, the preferred leader first."""


class RefusedError(Exception):
    """Partitions are not created; the error and the words say why."""

    def __init__(self, error: Error, words: str) -> None:
        super().__init__(words)
        self.error = error
        self.words = words


def usable(view: DecisionView) -> list[Registration]:
    """The brokers that new replicas may be put on: neither fenced nor leaving."""
    return [
        one
        for _, one in sorted(view.image.brokers.items())
        if not one.fenced and not one.in_controlled_shutdown
    ]


def spread(
    view: DecisionView, *, partitions: int, replication_factor: int, begin: int
) -> Assignment:
    """Spread partitions over the usable brokers. Raises RefusedError if these are too few."""
    brokers = usable(view)
    if partitions < 1:
        raise RefusedError(Error.INVALID_PARTITIONS, f"expected partitions, found {partitions}")
    if not 1 <= replication_factor <= len(brokers):
        raise RefusedError(
            Error.INVALID_REPLICATION_FACTOR,
            f"expected a replication factor of 1 to {len(brokers)} (unfenced), "
            f"found {replication_factor}",
        )
    return placed(
        brokers, partitions=partitions, replication_factor=replication_factor, begin=begin
    )


def refuse_twice(name: str, names: Sequence[str]) -> None:
    """Raise RefusedError if a request names this topic twice."""
    if names.count(name) > 1:
        raise RefusedError(Error.INVALID_REQUEST, "the topic is named twice")


def check(view: DecisionView, assignment: Assignment, *, first: int = 0) -> None:
    """Raise RefusedError unless every partition can be led from its first moment.

    `first`: the number of the assignment's first partition.
    """
    able = {one.broker_id for one in usable(view)}
    wrong = ""
    if not assignment or len({len(one) for one in assignment}) != 1:
        wrong = "expected the same number of replicas for each partition"
    for partition, replicas in enumerate(assignment, start=first):
        if not replicas or len(set(replicas)) != len(replicas):
            wrong = f"partition {partition} has no replicas, or one of them twice"
        elif unknown := [one for one in replicas if one not in view.image.brokers]:
            wrong = f"partition {partition} has replicas on unknown brokers {unknown}"
        elif able.isdisjoint(replicas):
            wrong = f"all brokers of partition {partition} are fenced or leaving"
    if wrong:
        raise RefusedError(Error.INVALID_REPLICA_ASSIGNMENT, wrong)


def begun_partitions(
    view: DecisionView, topic_id: int, assignment: Assignment, *, first: int = 0
) -> list[PartitionRecord]:
    """The records of new partitions: in sync is who is usable, and the first of them leads."""
    able = {one.broker_id for one in usable(view)}
    records = []
    for partition, replicas in enumerate(assignment, start=first):
        isr = tuple(one for one in replicas if one in able)
        records.append(PartitionRecord(topic_id, partition, replicas, isr, isr[0], 0, 0))
    return records


def placed(
    brokers: Sequence[Registration], *, partitions: int, replication_factor: int, begin: int
) -> Assignment:
    """The replicas of each partition, the preferred leader first."""
    assert replication_factor <= len(brokers), (replication_factor, len(brokers))
    ring = _ring(brokers)
    count = len(ring)
    return tuple(
        tuple(ring[(begin + partition + step) % count] for step in range(replication_factor))
        for partition in range(partitions)
    )


def _ring(brokers: Sequence[Registration]) -> list[int]:
    ranks: dict[str, int] = {}
    placed_by_rank = []
    for one in brokers:
        rack = one.rack or ""
        rank = ranks.get(rack, 0)
        ranks[rack] = rank + 1
        placed_by_rank.append((rank, rack, one.broker_id))
    return [broker_id for _, _, broker_id in sorted(placed_by_rank)]
