"""The sight of such a cluster: its znodes, its servers, and what each broker shows.

Znodes are read from the tree of the server that leads, as it is at the end of a round: what a read
behind a `sync` would return. Nothing is asked for it, so that looking changes nothing.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from fencepost.clusters.data_tree.tree import DataTree
from fencepost.clusters.identities import Identities, node_with
from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.kafka_zookeeper.view import KafkaZooKeeperView
from fencepost.clusters.node_port.zookeeper import ZOOKEEPER
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.messages.client import MetadataResponse
from fencepost.clusters.reference.zk.znodes import BROKER_IDS, CONTROLLER, TOPICS
from fencepost.clusters.simulation.host import ProcessState
from fencepost.clusters.simulation.zookeeper.ensemble import SimulatedEnsemble
from fencepost.clusters.simulation.zookeeper.quorum import Mode
from fencepost.clusters.zookeeper.view import FOLLOWER, LEADER, EnsembleView, ServerState
from fencepost.history.journal import RowJournal

_MODES: Final = {Mode.LEADING: LEADER, Mode.FOLLOWING: FOLLOWER}


class ZnodeSight:
    """`Sight` whose view is that of the znodes. `names`: of brokers' hosts by number."""

    def __init__(
        self,
        ensemble: SimulatedEnsemble,
        *,
        names: Mapping[int, NodeName],
        identities: Identities,
    ) -> None:
        self._identities = identities
        self._names = names
        self._numbers = {name: number for number, name in names.items()}
        self._journal: RowJournal | None = None
        """The table `ensemble`, while it is kept."""
        self.shown: KafkaZooKeeperView | None = None
        """The view with the ensemble's part; None: no server leads."""
        self._view: ClusterView | None = None
        """The brokers' part of it."""
        self._controller: int | None = None
        self._broker_epochs: Mapping[int, int] = {}
        self._ensemble = ensemble
        self._servers: dict[int, ServerState] = {}
        self._earlier = 0
        self._read: tuple[DataTree | None, int] = (None, -1)
        """The tree that was read last, and as of which zxid."""
        self._partitions: dict[str, PartitionView] = {}
        self._topic_ids: dict[str, str] = {}

    @property
    def parts(self) -> tuple[object, ...]:
        """Return the parts of the view, the same ones as before where nothing has changed."""
        shown = self.shown
        if shown is None:
            return ()
        kafka = shown.kafka
        return (kafka.brokers, kafka.serving, kafka.partitions, shown.ensemble.servers)

    def controller(self, claims: int) -> int:  # noqa: ARG002  # of KRaft
        """Return the host of the broker in `/controller` as of now; -1: none, or no leader."""
        tree = self._tree()
        broker = None if tree is None else _controller(tree)
        node = None if broker is None else self._identities.node_of(broker)
        return -1 if node is None else self._numbers[node]

    def is_up(self, view: ClusterView | None, brokers: Collection[int]) -> bool:
        """Return whether all brokers are registered and list themselves, and one controls."""
        is_whole = view is not None and view.brokers == view.serving == brokers
        return is_whole and self.controller(-1) >= 0

    def latest_registration(self, broker: NodeName) -> int:
        """Return the zxid that made the znode of its latest session; -1: none was seen."""
        return self._identities.epochs.get(broker, -1)

    @contextmanager
    def recorded(self, raw: Path) -> Iterator[None]:
        """Record in `raw`, while entered, what servers show."""
        with closing(RowJournal(raw, "ensemble")) as self._journal:
            yield
        self._journal = None

    def holder_of(self, broker: int, tree: DataTree | None = None) -> NodeName | None:
        """Return the node that is registered under this id; None: none is, or no server leads."""
        tree = tree or self._tree()
        stated = {} if tree is None else _stated(tree, f"{BROKER_IDS}/{broker}")
        return node_with(stated.get("endpoints", ()), self._names.values())

    def view(self, now: int, answers: Mapping[int, MetadataResponse]) -> ClusterView | None:
        """Return the znodes' view, by the brokers that list themselves."""
        tree = self._tree()
        self._look_at_servers(now)
        if tree is None:
            self.shown = self._view = None
            return None
        self._look_at(tree)
        before = self._view
        ids = self._identities.now
        by_id = {ids[self._names[host]]: answer for host, answer in answers.items()}
        serving = frozenset(
            broker
            for broker, answer in by_id.items()
            if any(one[0] == broker for one in answer.brokers)
        )
        brokers = frozenset(self._broker_epochs)
        if before is not None:
            brokers = before.brokers if before.brokers == brokers else brokers
            serving = before.serving if before.serving == serving else serving
        self._view = view = ClusterView(
            time_ns=now,
            brokers=brokers,
            serving=serving,
            partitions=self._partitions,
            topic_ids=self._topic_ids,
        )
        self.shown = KafkaZooKeeperView(
            kafka=view,
            controller=self._controller,
            broker_epochs=self._broker_epochs,
            ensemble=EnsembleView(servers=self._servers, earlier=self._earlier),
        )
        return view

    def _tree(self) -> DataTree | None:
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
            mode = _MODES.get(server.member.mode) if server.member.is_serving else None
            zxid = None if mode is None else server.tree.zxid
            found[host.number - ZOOKEEPER] = ServerState(mode=mode, zxid=zxid)
            if self._journal is not None:
                stated = {} if mode is None else {"mode": mode, "zxid": zxid}
                self._journal.add(
                    {
                        "asked_ns": now,
                        "time_ns": now,
                        "node": host.name,
                        "serving": mode is not None,
                        **stated,
                    }
                )
        self._servers = found if found != self._servers else self._servers

    def _look_at(self, tree: DataTree) -> None:
        """Read what brokers keep in the tree, if it has changed."""
        if self._read == (tree, tree.zxid):
            return
        self._read = (tree, tree.zxid)
        self._controller = _controller(tree)
        ids = {name: f"{BROKER_IDS}/{name}" for name in _children(tree, BROKER_IDS)}
        self._broker_epochs = {int(name): tree.znodes[path].czxid for name, path in ids.items()}
        holders = {broker: self.holder_of(broker, tree) for broker in self._broker_epochs}
        known = {broker: node for broker, node in holders.items() if node is not None}
        self._identities.saw(known, self._broker_epochs)
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


def _children(tree: DataTree, path: str) -> list[str]:
    znode = tree.znodes.get(path)
    return [] if znode is None else sorted(znode.children)


def _stated(tree: DataTree, path: str) -> Mapping[str, Any]:
    znode = tree.znodes.get(path)
    if znode is None or not znode.data:
        return {}
    stated: Mapping[str, Any] = json.loads(znode.data)
    return stated


def _controller(tree: DataTree) -> int | None:
    broker = int(_stated(tree, CONTROLLER).get("brokerid", -1))
    return broker if broker >= 0 else None
