"""The options of the membership workload; defaults suit a small cluster on one machine."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from fencepost.clusters.kafka_port import BrokersSpec
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import Mistakes
from fencepost.workloads.kind import WorkloadKind

_MOVES_SURE: Final = 5
"""Moves of which one has surely begun."""
_SLACK_S: Final = 20.0
"""The time of a move that is held up: as long as its completion may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipSpec:
    """Movers that add, remove and replace replicas of the run's partitions.

    ValueError for a combination that cannot be; pydantic checks the single fields.
    """

    movers: Annotated[int, Field(ge=1, le=16)] = 2
    """The number of partitions that move at a time, at most: each mover has partitions of its own,
    and waits for the one that it moves.
    """
    rate: Annotated[float, Field(gt=0, le=100)] = 0.5
    """Moves a second, all movers together; while a mover waits for a move, it forfeits those that
    fall due.
    """
    moves: Annotated[int, Field(ge=1)] | None = None
    """The budget: the number of moves of all movers together; None: until told to stop."""
    replicas_min: Annotated[int, Field(ge=1, le=9)] = 2
    """The smallest number of replicas that a partition is asked to have."""
    replicas_max: Annotated[int, Field(ge=1, le=9)] | None = None
    """The largest number of replicas; None: as many as there are brokers."""
    cancel_share: Annotated[float, Field(ge=0, le=1)] = 0.2
    """The share of moves that are called off."""
    cancel_after_max_ms: Annotated[int, Field(ge=0, le=600_000)] = 300
    """The longest time after which they are called off, if they are not over by then: an empty
    partition moves within about 100 ms.
    """
    completion_limit_ms: Annotated[int, Field(ge=100, le=600_000)] = 20_000
    """A move that is not over by then is called off: one onto a broker that is down would hold up
    its mover for as long as that is."""
    write_timeout_ms: Annotated[int, Field(ge=100, le=120_000)] = 5000
    """The time after which a write without an answer becomes info."""

    def __post_init__(self) -> None:
        if self.replicas_max is not None and self.replicas_max < self.replicas_min:
            raise ValueError(
                f"replicas_max must be at least replicas_min, found {self.replicas_max} and "
                f"{self.replicas_min}"
            )
        if self.moves is not None and self.moves < self.movers:
            raise ValueError(
                f"each mover needs a move, found moves: {self.moves} and movers: {self.movers}"
            )

    def moves_of(self, mover: int) -> int | None:
        """Return the budget of one mover, by its number."""
        if self.moves is None:
            return None
        return len(range(mover, self.moves, self.movers))


def _check(spec: MembershipSpec, cluster: BrokersSpec, topics: Sequence[TopicSpec]) -> None:
    mistakes, brokers = Mistakes(), cluster.brokers
    if spec.replicas_min >= brokers:
        found = f"{spec.replicas_min} replicas on {brokers} brokers leave none to move a replica to"
        mistakes.note(("replicas_min",), found)
    if spec.replicas_max is not None and spec.replicas_max > brokers:
        mistakes.note(("replicas_max",), f"{spec.replicas_max} replicas on {brokers} brokers")
    keys_count = sum(len(topic.keys) for topic in topics)
    if topics and spec.movers > keys_count:
        found = f"each mover needs a partition of its own, found {keys_count} partitions"
        mistakes.note(("movers",), found)
    mistakes.refuse()


def _operations(spec: MembershipSpec) -> dict[str, float | None]:
    """Return the moves; many may be over before they are called off."""
    reassign: dict[str, float | None] = {"reassign": _MOVES_SURE / spec.rate + _SLACK_S}
    return reassign | ({"cancel-reassignment": None} if spec.cancel_share else {})


KIND: Final = WorkloadKind(
    word="membership",
    spec=MembershipSpec,
    module="fencepost.workloads.membership",
    since="3.1",
    beside=True,
    first_process=200_000,
    tables=lambda _spec: ("partition_writes",),
    operations=_operations,
    check=_check,
    moves_replicas=True,
)
