"""Partitions as a mix draws them: by the proxy, or by rules in the nodes' own networks."""

from fencepost.clusters.port import NodeName
from fencepost.nemesis.schedules.deeds import HealCut
from fencepost.nemesis.schedules.partitions import nodes_lost, partition
from fencepost.nemesis.schedules.schedule import lasting
from fencepost.nemesis.targets import Scene
from fencepost.nemesis.verbs.episode import Episode, on_cluster
from fencepost.nemesis.verbs.partition import Means, Partition
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.step import Step


def _lost(step: Step, scene: Scene) -> tuple[NodeName, ...]:
    assert isinstance(step, Partition)
    return nodes_lost(step, scene)


def _episode(kind: str, by: Means | None, prerequisite: Prerequisite) -> Episode:
    return on_cluster(
        kind,
        lasting(partition(by=by), healed=HealCut()),
        prerequisite=prerequisite,
        between_nodes=True,
        lost=_lost,
    )


EPISODES = (
    _episode("partition", None, Prerequisite.PROXY),
    _episode("packets", Means.PACKETS, Prerequisite.NETWORKS),
)
