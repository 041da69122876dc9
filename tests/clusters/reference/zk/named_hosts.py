"""A cluster whose brokers find their ids by host name: ids are not the numbers of hosts."""

from collections.abc import Mapping
from typing import Any

from zk_cluster import Cluster

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.node_port.zookeeper import ZOOKEEPER
from fencepost.clusters.reference.nodes.broker import BrokerNode
from fencepost.clusters.reference.zk.broker import ZkRegistrar
from fencepost.clusters.reference.zk.znodes import broker_path
from fencepost.clusters.simulation.host import ProcessState
from fencepost.clusters.simulation.zookeeper.sessioned import SessionedNode


class Addressed:
    """A node whose requests to a broker id go to the host that has registered it last."""

    def __init__(self, inner: SessionedNode, cluster: "NamedHosts") -> None:
        self.inner = inner
        self.alarm = inner.alarm
        self.cluster = cluster

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        self.inner.handle(now, source, kind, message, effects)
        for place, effect in enumerate(effects):
            if effect[0] == SEND and 0 <= effect[1] < ZOOKEEPER:
                effects[place] = (SEND, self.cluster.host_of(effect[1]), effect[2])


class NamedHosts(Cluster):
    """Brokers 1 to 3 have their numbers as ids at first; 4 is down. All are named `host-N`."""

    def __init__(self, **told: Any) -> None:
        settings = {0: told, **{number: {} for number in (1, 2, 3, 4)}}
        super().__init__(brokers=4, settings=settings)
        self.kill(4)
        self.until(lambda: self.is_ready(1, 2, 3))
        for number in self.hosts:
            self.settings[number]["node_id"] = -1

    def _node(self, number: int) -> Any:
        return Addressed(super()._node(number), self)

    def broker(self, number: int) -> BrokerNode[ZkRegistrar]:
        node = self.nodes[number]
        assert isinstance(node, Addressed), self.hosts[number]
        assert isinstance(node.inner.inner, BrokerNode)
        return node.inner.inner

    def host_of(self, broker_id: int) -> int:
        """The host that has registered this id last; one that is not there, if none has."""
        found = [
            (self.broker(one).situation.broker_epoch, one)
            for one in self.running()
            if self.id_of(one) == broker_id
        ]
        return max(found)[1] if found else -1

    def id_of(self, number: int) -> int:
        """The id that a host has registered; -1: none."""
        situation = self.broker(number).situation
        return situation.node_id if situation.broker_epoch >= 0 else -1

    def lose(self, number: int, *, disk: bool = True, at_once: bool = False) -> None:
        """Kill a broker; its disk is gone. `at_once`: its session may still last."""
        broker_id = self.id_of(number)
        self.kill(number)
        if disk:
            self.hosts[number].disk.format({})
        if not at_once:
            self.until(lambda: broker_path(broker_id) not in self.znodes())

    def znodes(self) -> Mapping[str, Any]:
        """The znodes of the ensemble's one server."""
        return self.ensemble.server(self.ensemble.hosts[0]).tree.znodes

    def data(self, path: str) -> bytes:
        """The data of a znode."""
        found: bytes = self.znodes()[path].data
        return found

    def registered(self, *numbers: int) -> tuple[int, ...]:
        """Wait until these hosts have registered; their ids."""
        self.until(
            lambda: all(
                self.hosts[one].state is ProcessState.DOWN or self.id_of(one) >= 0
                for one in numbers
            )
        )
        return tuple(self.id_of(one) for one in numbers)

    def refilled(self, number: int, key: PartitionKey, values: list[Any]) -> None:
        """Wait until this host has these records."""
        self.until(lambda: key in self.broker(number).replicas.hosted)
        self.until(lambda: self.values(number, key) == values)
