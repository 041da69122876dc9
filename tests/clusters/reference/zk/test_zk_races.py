"""Two ways in which acknowledged records are lost under document Z, as it stands.

Both let a replica without the committed records into the ISR by an IsrChange that arrives late. The
first one is KIP-903's, and closed by naming the incarnation of each member; the second one is not:
an IsrChange names no version of the state that it is to replace.
"""

from typing import Any

import pytest
from zk_cluster import Cluster

from clusters.node_port.storage import PartitionKey
from clusters.reference.zk.messages import IsrChangeRequest
from clusters.reference.zk.rules import ZkRules
from clusters.simulation.host import Channel
from clusters.simulation.network import table_of


class Holder:
    """Keeps the first IsrChange of a broker that adds a member; an interceptor of the network."""

    def __init__(self, cluster: Cluster, sender: int) -> None:
        self.cluster = cluster
        self.sender = sender
        self.held: list[tuple[Channel, Any]] = []
        cluster.world.network.intercept(self)

    def wanted(self, link: Channel) -> bytes | bytearray:
        return table_of([IsrChangeRequest.kind] if link.sender.number == self.sender else [])

    def take(self, link: Channel, message: Any, _request: Any) -> bool:
        is_growth = len(message.topics[0][1][0].isr) > 1
        if self.held or not is_growth:
            return False
        self.held.append((link, message))
        return True

    def release(self) -> None:
        for link, message in self.held:
            self.cluster.world.network.transmit(link, message)


def shrunk(rules: ZkRules) -> tuple[Cluster, PartitionKey, int, int]:
    """A leader whose follower has left the ISR, and what both are."""
    cluster = Cluster(rules=rules).ready()
    leader, follower = (one for one in cluster.hosts if one != cluster.controller())
    key = (cluster.create("t", (leader, follower)), 0)
    assert cluster.produce(key, "a", broker=leader) == 0
    leave(cluster, key, leader, follower)
    return cluster, key, leader, follower


def leave(cluster: Cluster, key: PartitionKey, leader: int, follower: int) -> None:
    """Have the follower lag by a record until it is out of the ISR."""
    cluster.cut(leader, follower)
    assert cluster.produce(key, "b", broker=leader, acks=1) == 0
    cluster.until(lambda: cluster.isr(key, broker=leader) == (leader,))


@pytest.mark.parametrize("checked", [False, True])
def test_a_wiped_follower_joins_by_an_isr_change_of_before_unless_incarnations_are_checked(
    *, checked: bool
) -> None:
    rules = ZkRules(member_incarnations_checked=checked)
    cluster, key, leader, follower = shrunk(rules)
    holder = Holder(cluster, leader)
    cluster.heal(leader, follower)
    cluster.until(lambda: bool(holder.held))
    cluster.kill(follower)
    cluster.hosts[follower].disk.format({})
    cluster.cut(leader, follower)
    cluster.start(follower)
    cluster.until(lambda: key in cluster.broker(follower).replicas.hosted)
    controller = cluster.controller()
    holder.release()
    cluster.run(100)
    joined = follower in cluster.isr(key, broker=controller)
    assert joined != checked
    cluster.kill(leader)
    cluster.run(5_000)
    is_led = key in cluster.broker(follower).replicas.leaders
    assert is_led != checked
    assert cluster.values(follower, key) == []


def test_a_late_copy_of_an_isr_change_undoes_a_later_one() -> None:
    cluster, key, leader, follower = shrunk(ZkRules(member_incarnations_checked=True))
    holder = Holder(cluster, leader)
    cluster.heal(leader, follower)
    cluster.until(lambda: set(cluster.isr(key, broker=leader)) == {leader, follower})
    assert holder.held, "the repeated request has been taken, the first copy is under way"
    leave(cluster, key, leader, follower)
    assert cluster.produce(key, "c", broker=leader) == 0
    holder.release()
    cluster.until(lambda: follower in cluster.isr(key, broker=cluster.controller()))
    cluster.kill(leader)
    cluster.until(lambda: key in cluster.broker(follower).replicas.leaders)
    assert cluster.values(follower, key) == ["a", "b"], "c was acknowledged, and is lost"
