"""The servers that a play can describe: the leader, and a follower."""

import random
from typing import Final

from fencepost.clusters.port import NodeName
from fencepost.clusters.targets import DescribedTarget, SystemState, VacantError
from fencepost.clusters.zookeeper.view import EnsembleView


def _leader(now: SystemState, _key: str, _draw: random.Random) -> NodeName:
    shown: EnsembleView | None = now.view
    if shown is None or shown.leader is None:
        raise VacantError("no server says that it leads")
    return _nodes(now)[shown.leader]


def _follower(now: SystemState, _key: str, draw: random.Random) -> NodeName:
    shown: EnsembleView | None = now.view
    nodes = _nodes(now)
    taking_part = [] if shown is None else sorted(shown.taking_part - {shown.leader})
    followers = [nodes[number] for number in taking_part if nodes[number] not in now.down]
    if not followers:
        raise VacantError("no server says that it follows")
    return draw.choice(followers)


def _nodes(now: SystemState) -> dict[int, NodeName]:
    return {number: node for node, number in now.broker_ids.items()}


TARGETS: Final = (
    DescribedTarget(words="leader", find=_leader),
    DescribedTarget(words="follower", find=_follower),
)
