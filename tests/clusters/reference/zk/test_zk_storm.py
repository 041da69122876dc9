"""Storms over a whole cluster in virtual time: what was acknowledged is there afterwards.

Brokers are killed, paused, stopped, wiped and cut off, servers of ZooKeeper restart, and topics
come, move and go; then all is healed, and the cluster has to be as ZooKeeper says it is.
"""

import json
import random
from collections import defaultdict
from typing import Any

import pytest
from zk_cluster import CLOSED, Cluster

from fencepost.clusters.node_port.notes import CONTROLLER_ELECTED, LEADS
from fencepost.clusters.node_port.storage import Batch, PartitionKey
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.messages.control import (
    AlterReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    NewPartitions,
    NewTopic,
)
from fencepost.clusters.reference.nodes.messages.data import ProduceRequest
from fencepost.clusters.reference.zk.rules import ZkRules
from fencepost.clusters.simulation.host import ProcessState

SERVER = 2001
STRIKES = ("kill", "restart", "pause", "cut", "cut off", "stop", "server", "heal", "heal", "heal")


class Storm:
    """A cluster, its draws, and what is broken in it."""

    def __init__(self, seed: int, **arguments: Any) -> None:
        self.draw = random.Random(seed)
        self.cluster = Cluster(seed=seed, **arguments).ready()
        self.cuts: list[tuple[int, int]] = []
        self.produced: dict[int, tuple[PartitionKey, int]] = {}
        """(partition, value) by correlation."""
        self.acknowledged: dict[PartitionKey, list[int]] = defaultdict(list)

    def strike(self) -> None:
        """Break something, or mend it."""
        cluster, draw = self.cluster, self.draw
        broker = draw.choice((1, 2, 3))
        host, up = cluster.hosts[broker], cluster.running()
        match draw.choice(STRIKES):
            case "kill" if len(up) > 1 and broker in up:
                cluster.kill(broker)
            case "restart" if broker in up:
                cluster.kill(broker)
                cluster.start(broker)
            case "pause" if broker in up:
                cluster.simulation.pause(host)
            case "stop" if len(up) > 1 and broker in up:
                cluster.simulation.stop(host)
            case "cut":
                self.cut(broker, draw.choice([one for one in (1, 2, 3) if one != broker]))
            case "cut off":
                self.cut(broker, SERVER)
            case "server":
                server = cluster.ensemble.hosts[0]
                cluster.simulation.kill(server)
                cluster.run_ms(draw.choice((50, 500, 2_500)))
                cluster.simulation.start(server)
            case _:
                self.heal()

    def cut(self, one: int, other: int) -> None:
        self.cluster.block(one, other)
        self.cuts.append((one, other))

    def heal(self) -> None:
        """Mend everything."""
        cluster = self.cluster
        for pair in self.cuts:
            cluster.heal(*pair)
        self.cuts.clear()
        for number, host in cluster.hosts.items():
            if host.state is ProcessState.PAUSED:
                cluster.simulation.resume(host)
            elif host.state is ProcessState.DOWN:
                cluster.start(number)

    def produce(self, keys: list[PartitionKey]) -> None:
        """Send a record to whoever takes itself for a leader; count what is acknowledged."""
        for key in keys:
            for broker in self.cluster.running():
                if key in self.cluster.broker(broker).replicas.leaders:
                    value = len(self.produced)
                    one = Batch(-1, -1, 1, -1, -1, -1, (value,))
                    request = ProduceRequest(0, -1, 1_500 * MS, ((key, one),))
                    self.produced[self.cluster.send(broker, request)] = (key, value)

    def count(self) -> None:
        """Note what was acknowledged."""
        for correlation, (key, value) in tuple(self.produced.items()):
            answer = self.cluster.answers.pop(correlation, CLOSED)
            if answer != CLOSED and not answer.partitions[0][1]:
                self.acknowledged[key].append(value)

    def administer(self) -> None:
        """Ask the controller for something; what comes of it is seen at the end."""
        draw, controller = self.draw, self.cluster.controller()
        name = f"t{draw.randrange(4)}"
        replicas = tuple(draw.sample((1, 2, 3), draw.choice((1, 2, 3))))
        new = NewTopic(name, draw.choice((1, 2)), draw.choice((1, 2)))
        moves = ((name, draw.randrange(2), draw.choice((replicas, None))),)
        timeout_ns = draw.choice((0, 1_000)) * MS
        request = draw.choice(
            (
                CreateTopicsRequest(0, (new,), timeout_ns),
                DeleteTopicsRequest(0, ((name, 0),), timeout_ns),
                CreatePartitionsRequest(0, (NewPartitions(name, draw.choice((2, 3))),), timeout_ns),
                AlterReassignmentsRequest(0, moves),
                ElectLeadersRequest(0, unclean=draw.random() < 0.5, partitions=None),
            )
        )
        if controller > 0:
            self.cluster.send(controller, request)

    def calm(self) -> None:
        """Mend everything, until the cluster is as ZooKeeper says it is."""
        for _ in range(3):
            self.heal()
            self.cluster.run_ms(3_000)
        self.cluster.until(lambda: self.amiss() is None, limit_ns=40_000 * MS)

    def amiss(self) -> object:
        """What is not yet as it has to be; None: nothing."""
        cluster = self.cluster
        if len(cluster.running()) < len(cluster.hosts) or not cluster.is_ready():
            return "a broker"
        leader = cluster.ensemble.leader
        assert leader is not None
        znodes = cluster.ensemble.server(leader).tree.znodes
        if znodes["/admin/delete_topics"].children or znodes["/isr_change_notification"].children:
            return "a demand"
        topics = sorted(znodes["/brokers/topics"].children)
        if any(sorted(cluster.broker(one).image.topics) != topics for one in cluster.hosts):
            return "topics"
        return next((one for name in topics if (one := self._amiss_in(znodes, name))), None)

    def _amiss_in(self, znodes: Any, name: str) -> object:
        cluster = self.cluster
        assigned = json.loads(znodes[f"/brokers/topics/{name}"].data)
        if assigned["adding_replicas"] or assigned["removing_replicas"]:
            return name, "moves"
        for partition, replicas in assigned["partitions"].items():
            znode = znodes.get(f"/brokers/topics/{name}/partitions/{partition}/state")
            state = {"leader": -1, "isr": []} if znode is None else json.loads(znode.data)
            if state["leader"] < 0 or sorted(state["isr"]) != sorted(replicas):
                return name, partition, state
            for one in cluster.hosts:
                image = cluster.broker(one).image
                key = (image.topics[name], int(partition))
                shown = image.partitions[key]
                known = (shown.leader, shown.leader_epoch, sorted(shown.isr))
                if known != (state["leader"], state["leader_epoch"], sorted(state["isr"])):
                    return name, partition, one, shown
                if (key in cluster.broker(one).replicas.hosted) != (one in replicas):
                    return name, partition, one, "hosted"
        return None

    def judge(self, keys: list[PartitionKey]) -> None:
        """Nothing that was acknowledged is lost, and no epoch has two leaders."""
        self.cluster.run_ms(1_000)
        self.count()
        for key in keys:
            logs = [self.cluster.values(one, key) for one in self.cluster.hosts]
            assert logs[0] == logs[1] == logs[2]
            assert set(self.acknowledged[key]) <= set(logs[0])
        for subject, width in ((CONTROLLER_ELECTED, 1), (LEADS, 2)):
            found: dict[Any, int] = {}
            for node, _, *note in self.cluster.noted(subject):
                assert found.setdefault(tuple(note[:width]), node) == node, note


@pytest.mark.parametrize("seed", range(1, 5))
@pytest.mark.parametrize("protocol", [1, 2])
def test_what_was_acknowledged_outlives_a_storm(seed: int, protocol: int) -> None:
    storm = Storm(seed, settings={0: {"inter_broker_protocol": protocol}})
    topic_id = storm.cluster.create("t", (1, 2, 3), (2, 3, 1))
    keys = [(topic_id, 0), (topic_id, 1)]
    for _ in range(25):
        for _ in range(3):
            storm.produce(keys)
            storm.cluster.run_ms(storm.draw.choice((20, 100, 300)))
        storm.strike()
    storm.calm()
    storm.judge(keys)
    assert sum(map(len, storm.acknowledged.values())) > 10


@pytest.mark.parametrize("seed", range(1, 7))
@pytest.mark.parametrize("protocol", [1, 2])
def test_topics_that_come_move_and_go_in_a_storm_are_as_zookeeper_says(
    seed: int, protocol: int
) -> None:
    storm = Storm(seed, settings={0: {"inter_broker_protocol": protocol}})
    for _ in range(25):
        for _ in range(storm.draw.choice((1, 2, 4))):
            storm.administer()
        storm.cluster.run_ms(storm.draw.choice((5, 20, 100, 400)))
        storm.strike()
    storm.calm()
    assert storm.cluster.answers


def wipes(seed: int, rules: ZkRules) -> tuple[int, int]:
    """Round by round one broker is wiped, and the controller killed before or after it.

    Returns how many records were acknowledged, and how many of them are lost.
    """
    storm = Storm(seed, rules=rules)
    cluster, draw = storm.cluster, storm.draw
    key = (cluster.create("t", (1, 2, 3)), 0)

    def write(ms: int) -> None:
        for _ in range(0, ms, 50):
            storm.produce([key])
            cluster.run_ms(50)

    for _ in range(4):
        storm.calm()
        write(300)
        victim, controller = draw.choice((1, 2, 3)), cluster.controller()
        is_first = draw.random() < 0.5
        if is_first and controller != victim:
            cluster.kill(controller)
            write(draw.choice((0, 800, 2_000)))
        cluster.kill(victim)
        cluster.hosts[victim].disk.format({})
        cluster.start(victim)
        write(draw.choice((0, 500, 2_500)))
        if not is_first and controller != victim:
            cluster.kill(controller)
            write(draw.choice((0, 2_500)))
    storm.calm()
    storm.count()
    left = set(cluster.values(cluster.leader(key), key))
    return len(storm.acknowledged[key]), len(set(storm.acknowledged[key]) - left)


def test_wiped_brokers_lose_nothing_whatever_becomes_of_the_controller() -> None:
    for seed in range(1, 7):
        acknowledged, lost = wipes(seed, ZkRules())
        assert acknowledged > 20
        assert lost == 0, seed


def test_without_unseen_restarts_found_they_lose_records() -> None:
    off = ZkRules().without("unseen_restarts_found")
    assert any(wipes(seed, off)[1] for seed in range(1, 7))
