"""A broker becomes the leader of a key, by reassignment and preferred election.

- move_leader: {t-0: 2}          # reassign so that 2 is preferred, then elect it
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from fencepost.clusters.kafka_port import Administers
from fencepost.clusters.port import Cluster
from fencepost.nemesis.verbs.administration import admin_verb, broker_of, by_key
from fencepost.nemesis.verbs.step import Bounded
from fencepost.nemesis.verbs.step_source import StepSource


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveLeader(Bounded):
    """Make a broker the leader of a key."""

    leaders: Mapping[str, int]


def _own(written: StepSource) -> dict[str, Any]:
    data = by_key(written, "{t-0: 2}")
    return {"leaders": {str(key): broker_of(one, written.stage) for key, one in data.items()}}


def _do(cluster: Cluster, step: MoveLeader) -> None:
    assert isinstance(cluster, Administers)
    for key, leader in step.leaders.items():
        cluster.move_leader(key, leader, within_s=step.within_s)


def _one_by_one(step: MoveLeader) -> list[MoveLeader]:
    return [replace(step, leaders={key: leader}) for key, leader in step.leaders.items()]


VERBS = (
    admin_verb(
        "move_leader",
        ("move_leader: {t-0: 2}",),
        MoveLeader,
        own=_own,
        operand=lambda step: dict(step.leaders),
        do=_do,
        ability=Administers,
        one_by_one=_one_by_one,
        tried=True,
    ),
)
