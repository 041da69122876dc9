"""The faults that a mix would draw, as far as the seed alone says which.

The draws depend on the cluster, too: on the time when it is whole again, and on its leaders. Here
every fault is over when it is healed, and each partition is led by its first replica. Later draws
differ from a run's where the cluster did otherwise.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from clusters.kafka_port import ClusterView, PartitionView, TopicSpec
from clusters.systems import kind_of_node
from harness.scenario.scenario import Scenario
from harness.seeds import stream
from nemesis.mix import Mix
from nemesis.targets import Scene
from nemesis.verbs.step import Step

__all__ = ["projected"]

_TICK_S: Final = 0.05


def projected(scenario: Scenario, seed: int) -> Iterator[tuple[float, Step]]:
    """Yield the steps with the earliest times, in seconds, at which they are due."""
    if scenario.mix is None:
        return
    mix, scene = Mix(scenario.mix, stream(seed, "mix"), scenario.keys), _scene(scenario)
    for tick in range(1, int(scenario.time_limit_s / _TICK_S)):
        now_s = tick * _TICK_S
        for step in mix.due(now_s, scene=scene, impaired=frozenset()):
            yield now_s, step


def _scene(scenario: Scenario) -> Scene:
    """Return the cluster when nothing has happened to it yet."""
    spec = scenario.cluster
    members = tuple(node for node in spec.nodes if node not in spec.spares)
    brokers = [node for node in members if kind_of_node(node).serves_clients]
    ids = {node: int(node.rpartition("-")[2]) for node in brokers}
    return Scene(
        nodes=members,
        broker_ids=ids,
        view=ClusterView(
            time_ns=0,
            brokers=frozenset(ids.values()),
            serving=frozenset(ids.values()),
            partitions={
                key: PartitionView(leader=replicas[0], isr=replicas, replicas=replicas)
                for topic in scenario.topics
                for key, replicas in _replicas(topic, len(brokers)).items()
            },
        )
        if scenario.topics
        else None,
        active_controller=members[0],
    )


def _replicas(topic: TopicSpec, brokers: int) -> Mapping[str, tuple[int, ...]]:
    """Return the replicas of each key: as stated, else one broker after the other."""
    copies = range(topic.replication_factor)
    return {
        key: topic.assignment[number]
        if topic.assignment is not None
        else tuple((number + copy) % brokers + 1 for copy in copies)
        for number, key in enumerate(topic.keys)
    }
