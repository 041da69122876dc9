"""Where the replicas of a new topic go, if nobody says.

Brokers stand in a ring, racks alternating; partition by partition one goes on by one, so that
leaders and replicas are spread evenly. The ring's beginning comes from where the decision stands in
the log: the same log places the same way.

Source: the idea of Kafka's `StripedReplicaPlacer`, without its draws.
"""

from collections.abc import Sequence

from clusters.reference.control.decision import View
from clusters.reference.image import Registration

__all__ = ["placed", "usable"]


def usable(view: View) -> list[Registration]:
    """The brokers that new replicas may be put on: neither fenced nor leaving."""
    return [
        one
        for _, one in sorted(view.image.brokers.items())
        if not one.fenced and not one.in_controlled_shutdown
    ]


def placed(
    brokers: Sequence[Registration], *, partitions: int, replication_factor: int, begin: int
) -> tuple[tuple[int, ...], ...]:
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
