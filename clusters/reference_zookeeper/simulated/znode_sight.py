"""The harness's observer of such a cluster: its znodes, its servers, and what each broker shows.

Znodes are read from the tree of the server that leads, as it is at the end of a round: what a read
behind a `sync` would return. Nothing is asked for it, so that looking changes nothing.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from clusters.identities import Identities, node_with
from clusters.kafka_port import ClusterView, PartitionView
from clusters.kafka_zookeeper.view import KafkaZooKeeperView
from clusters.node_port.zookeeper import ZOOKEEPER
from clusters.port import NodeName
from clusters.reference.simulated.observing import Running, WatchingNode
from clusters.reference.zk.znodes import BROKER_IDS, CONTROLLER, TOPICS
from clusters.simulation.host import ProcessState
from clusters.simulation.zookeeper.ensemble import SimulatedEnsemble
from clusters.simulation.zookeeper.peer import PeerState
from clusters.simulation.zookeeper.tree import Tree
from clusters.zookeeper.view import FOLLOWER, LEADER, EnsembleView, ServerState
from history.journal import RowJournal

_MODES: Final = {PeerState.LEADING: LEADER, PeerState.FOLLOWING: FOLLOWER}


class ZkWatchingNode(WatchingNode):
    """`observing.Watch`, whose view is that of the znodes. `names`: of brokers' hosts by number."""

    def __init__(
        self,
        running: Running,
        ensemble: SimulatedEnsemble,
        *,
        names: Mapping[int, NodeName],
        identities: Identities,
    ) -> None:
        super().__init__(running)
        self._identities = identities
        self._names = names
        self.ensemble_journal: RowJournal | None = None
        """The table `ensemble`, if it is kept."""
        self.shown: KafkaZooKeeperView | None = None
        """The view with the ensemble's part; None: no server leads."""
        self.controller: int | None = None
        self.broker_epochs: Mapping[int, int] = {}
        self._ensemble = ensemble
        self._servers: dict[int, ServerState] = {}
        self._earlier = 0
        self._read: tuple[Tree | None, int] = (None, -1)
        """The tree that was read last, and as of which zxid."""
        self._partitions: dict[str, PartitionView] = {}
        self._topic_ids: dict[str, str] = {}

    def controller_now(self) -> int | None:
        """Return the broker in `/controller` as of now; None: none is, or no server leads."""
        tree = self._tree()
        return None if tree is None else _controller(tree)

    def holder_of(self, broker: int, tree: Tree | None = None) -> NodeName | None:
        """Return the node that is registered under this id; None: none is, or no server leads."""
        tree = tree or self._tree()
        stated = {} if tree is None else _stated(tree, f"{BROKER_IDS}/{broker}")
        return node_with(stated.get("endpoints", ()), self._names.values())

    def _view(self, now: int) -> ClusterView | None:
        tree = self._tree()
        self._look_at_servers(now)
        if tree is None:
            self.shown = None
            return None
        self._look_at(tree)
        before = self.view
        ids = self._identities.now
        answers = {ids[self._names[host]]: answer for host, answer in self.answers.items()}
        serving = frozenset(
            broker
            for broker, answer in answers.items()
            if any(one[0] == broker for one in answer.brokers)
        )
        brokers = frozenset(self.broker_epochs)
        if before is not None:
            brokers = before.brokers if before.brokers == brokers else brokers
            serving = before.serving if before.serving == serving else serving
        view = ClusterView(
            time_ns=now,
            brokers=brokers,
            serving=serving,
            partitions=self._partitions,
            topic_ids=self._topic_ids,
        )
        self.shown = KafkaZooKeeperView(
            kafka=view,
            controller=self.controller,
            broker_epochs=self.broker_epochs,
            ensemble=EnsembleView(servers=self._servers, earlier=self._earlier),
        )
        return view

    def _tree(self) -> Tree | None:
        leader = self._ensemble.leader
        if leader is None or leader.state is not ProcessState.RUNNING:
            return None
        return self._ensemble.server(leader).tree

    def _look_at_servers(self, now: int) -> None:
        self._earlier = max((one.zxid or 0 for one in self._servers.values()), default=0)
        found: dict[int, ServerState] = {}
        for host in self._ensemble.hosts:
            if host.state is not ProcessState.RUNNING:
                continue
            server = self._ensemble.server(host)
            mode = _MODES.get(server.peer.state) if server.peer.is_serving else None
            zxid = None if mode is None else server.tree.zxid
            found[host.number - ZOOKEEPER] = ServerState(mode=mode, zxid=zxid)
            if self.ensemble_journal is not None:
                stated = {} if mode is None else {"mode": mode, "zxid": zxid}
                self.ensemble_journal.add(
                    {
                        "asked_ns": now,
                        "time_ns": now,
                        "node": host.name,
                        "serving": mode is not None,
                        **stated,
                    }
                )
        self._servers = found if found != self._servers else self._servers

    def _look_at(self, tree: Tree) -> None:
        """Read what brokers keep in the tree, if it has changed."""
        if self._read == (tree, tree.zxid):
            return
        self._read = (tree, tree.zxid)
        self.controller = _controller(tree)
        ids = {name: f"{BROKER_IDS}/{name}" for name in _children(tree, BROKER_IDS)}
        self.broker_epochs = {int(name): tree.znodes[path].czxid for name, path in ids.items()}
        holders = {broker: self.holder_of(broker, tree) for broker in self.broker_epochs}
        known = {broker: node for broker, node in holders.items() if node is not None}
        self._identities.saw(known, self.broker_epochs)
        partitions, topic_ids = {}, {}
        for name in _children(tree, TOPICS):
            topic = _stated(tree, f"{TOPICS}/{name}")
            if "topic_id" in topic:
                topic_ids[str(topic["topic_id"])] = name
            for number, replicas in sorted(topic.get("partitions", {}).items()):
                state = _stated(tree, f"{TOPICS}/{name}/partitions/{number}/state")
                leader = int(state.get("leader", -1))
                partitions[f"{name}-{number}"] = PartitionView(
                    leader=leader if leader >= 0 else None,
                    isr=tuple(state.get("isr", ())),
                    replicas=tuple(replicas),
                )
        if partitions != self._partitions:
            self._partitions = partitions
        self._topic_ids = topic_ids


def _children(tree: Tree, path: str) -> list[str]:
    znode = tree.znodes.get(path)
    return [] if znode is None else sorted(znode.children)


def _stated(tree: Tree, path: str) -> Mapping[str, Any]:
    znode = tree.znodes.get(path)
    if znode is None or not znode.data:
        return {}
    stated: Mapping[str, Any] = json.loads(znode.data)
    return stated


def _controller(tree: Tree) -> int | None:
    broker = int(_stated(tree, CONTROLLER).get("brokerid", -1))
    return broker if broker >= 0 else None
