"""Brokers whose metadata an ensemble keeps, as processes beside it, whatever they run.

| znode | what is read of it |
|---|---|
| `/brokers/ids/N` | broker N has a session; the zxid that made it is the broker's epoch |
| `/brokers/topics/T` | the replicas of each partition, and the topic's id (from 2.8 on) |
| `/brokers/topics/T/partitions/P/state` | the leader and the ISR |
| `/controller` | the active controller |
"""

import json
import socket
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fencepost.clusters.abilities import LinkEnd
from fencepost.clusters.hosts.place import KEPT, Site
from fencepost.clusters.identities import Identities, node_with
from fencepost.clusters.kafka.api_versions import api_versions_of
from fencepost.clusters.kafka.configuration import KafkaNode
from fencepost.clusters.kafka.metadata_watch import MetadataWatch
from fencepost.clusters.kafka.multi_node_requests import is_answered
from fencepost.clusters.kafka.observation import ask_metadata, view_of
from fencepost.clusters.kafka.processes import BrokerProcesses
from fencepost.clusters.kafka.software import KafkaFiles
from fencepost.clusters.kafka_port import ClusterView, PartitionView, Role, role_of
from fencepost.clusters.kafka_zookeeper.configuration import session_timeout_ms
from fencepost.clusters.kafka_zookeeper.metadata_log import write_metadata_log
from fencepost.clusters.kafka_zookeeper.system import KafkaZooKeeperSpec
from fencepost.clusters.kafka_zookeeper.view import KafkaZooKeeperView
from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.node import ProcessNode, Software
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.witness.witness import WitnessReport, write_replicas
from fencepost.clusters.zookeeper.ensemble import Ensemble
from fencepost.clusters.zookeeper.four_letter_words import is_answered_on
from fencepost.clusters.zookeeper.prepared import ZooKeeperPrepared
from fencepost.clusters.zookeeper.stored.tables import write_server_disks
from fencepost.clusters.zookeeper.watch import EnsembleWatch
from fencepost.clusters.zookeeper.znodes import ZnodeRead, ZnodeReader, children_of, data_of
from fencepost.history.failure import HarnessError

_SLACK_S: Final = 10.0
_POLL_S: Final = 0.05
_IDS: Final = "/brokers/ids"
_TOPICS: Final = "/brokers/topics"
_CONTROLLER: Final = "/controller"


class UnformattedFiles(KafkaFiles):
    """The part of a broker's `clusters.processes.node.Software` where nothing is formatted."""

    __slots__ = ()
    first_directory_id = None

    def format(self, data: Path, *, directory_id: str | None) -> None:  # noqa: ARG002 -- the port's
        """Make an empty directory; the broker notes there what the znodes say of it."""
        data.mkdir(parents=True)

    def format_command(self, directory: Path) -> list[str] | None:  # noqa: ARG002 -- the port's
        """Return None: this generation formats nothing."""
        return None

    def directory_id(self, data: Path) -> str | None:  # noqa: ARG002 -- the port's
        """Return None: a directory has no id of its own."""
        return None


class BrokersOnZooKeeper(BrokerProcesses):
    """`clusters.kafka_port.BrokerCluster` with all the abilities of a cluster of processes.

    `prepared`: its ensemble; `version`: the release of Kafka whose requests its brokers understand.
    The site's ports are those of Kafka's nodes, then three for each server.
    """

    _spec: KafkaZooKeeperSpec

    def __init__(
        self,
        spec: KafkaZooKeeperSpec,
        *,
        prepared: ZooKeeperPrepared,
        version: str,
        site: Site,
    ) -> None:

        def ensemble(ports: Iterator[int]) -> Mapping[NodeName, ProcessNode]:
            self._ensemble = Ensemble(
                spec.ensemble,
                prepared=prepared,
                host=site.host,
                home=site.directory.absolute(),
                ports=ports,
                role=Role.ZOOKEEPER,
            )
            return self._ensemble.nodes

        super().__init__(
            spec,
            site=site,
            software=self._equip,
            is_answered=self._answers_on,
            api_versions=api_versions_of(version),
            before=ensemble,
        )
        self._identities = Identities(spec.view_ids)
        self._reader = ZnodeReader(lambda: self._running(Role.ZOOKEEPER))

    @property
    def spec(self) -> KafkaZooKeeperSpec:
        """The specification that it was built from."""
        return self._spec

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of brokers, as they are now; of servers, 2000 and their `myid`."""
        return self._identities.now

    @property
    def node_ids(self) -> Mapping[NodeName, int]:
        """The ids of nodes; -1 for one that had several."""
        return {**super().node_ids, **self._identities.of_whole_run}

    @property
    def last_ids(self) -> Mapping[NodeName, int]:
        """The present ids of nodes that had several."""
        return self._identities.last

    def broker_id(self, node: NodeName) -> int:
        """Kafka's id of this node, as it is now; of `zookeeper-n`, 2000 + n."""
        known = self._identities.now.get(node)
        return self._listed[node].node_id if known is None else known

    def links(self) -> tuple[LinkEnd, ...]:
        """Return links: Kafka's nodes and servers among themselves, those to these, clients."""
        return (*super().links(), *self._ensemble.links(clients=tuple(self._listed)))

    def stop(self) -> None:
        """Stop every node, brokers first."""
        super().stop()
        self._reader.close()

    def start_node(self, node: NodeName) -> None:
        """Start a node that is down, on the disk that it has.

        A broker is started once the session of its predecessor has ended: it would end at once,
        where another has its znode.
        """
        if role_of(node) is Role.BROKER:
            self._await_session_end(node)
        super().start_node(node)

    def wipe_node(self, node: NodeName, *, keep_directory_id: bool = False) -> None:
        """Delete all data of a node that is down; what a server had logged is kept elsewhere."""
        self._keep_logs(node)
        super().wipe_node(node, keep_directory_id=keep_directory_id)

    def rollback_node(self, node: NodeName, name: str) -> None:
        """Replace the data of a node by a copy; what a server had logged is kept elsewhere."""
        self._keep_logs(node)
        super().rollback_node(node, name)

    def _keep_logs(self, node: NodeName) -> None:
        if role_of(node) is Role.ZOOKEEPER:
            self._nodes[node].keep("version-2")

    def view(self) -> KafkaZooKeeperView:
        """The znodes, which brokers serve, and the ensemble, within a few seconds.

        Raises HarnessError if no server lets its znodes be read.
        """
        ensemble = self._ensemble.look(self._running(Role.ZOOKEEPER))
        found = _metadata_of(self._reader)
        nodes = {broker: self._node_with(ends) for broker, ends in found.endpoints.items()}
        known = {broker: node for broker, node in nodes.items() if node is not None}
        self._identities.saw(known, found.broker_epochs)
        answers = ask_metadata(self._running(Role.BROKER), api_versions=self._spoken)
        own = {self.broker_id(name): view_of(one, time_ns=0) for name, one in answers.items()}
        return KafkaZooKeeperView(
            kafka=ClusterView(
                time_ns=self._clock.now_ns(),
                brokers=frozenset(found.broker_epochs),
                serving=frozenset(broker for broker, view in own.items() if broker in view.brokers),
                partitions=found.partitions,
                topic_ids=found.topic_ids,
            ),
            controller=found.controller,
            broker_epochs=found.broker_epochs,
            ensemble=ensemble,
        )

    def latest_registration(self, broker: NodeName) -> int:
        """The zxid that made the znode of its latest session; -1: none was seen."""
        return self._identities.epochs.get(broker, -1)

    def leader_now(self) -> NodeName | None:
        """The active controller by its znode; None if no broker is, or no server answers."""
        try:
            controller = _controller_of(self._reader)
        except HarnessError:
            return None
        if controller is None:
            return None
        known = self._identities.node_of(controller)
        is_own = known is None and bool(self._names(Role.CONTROLLER))
        return self.node_of(controller) if is_own else known

    @contextmanager
    def watch(self, raw: Path, *, topics: Sequence[str]) -> Iterator[None]:
        """Record in `raw`, while entered, what brokers, controllers and servers show."""
        has_controllers = bool(self._names(Role.CONTROLLER))
        shown = MetadataWatch(
            raw,
            clock=self._clock,
            topics=topics,
            brokers={name: self._address(name) for name in self._names(Role.BROKER)},
            controllers=(lambda: self._running(Role.CONTROLLER)) if has_controllers else None,
            node_of=self.node_of,
            api_versions=self._spoken,
        )
        servers = EnsembleWatch(
            raw, clock=self._clock, running=lambda: self._running(Role.ZOOKEEPER)
        )
        with shown, servers:
            yield

    def testify(self, raw: Path, *, topics: Sequence[str]) -> WitnessReport:
        """Record in `raw` what the disks hold: replicas, metadata, all of the ensemble's."""
        self._write_node_tables(raw)
        brokers = {name: self.data_of(name) for name in self._names(Role.BROKER)}
        servers = {name: self.data_of(name) for name in self._names(Role.ZOOKEEPER)}
        report = write_replicas(brokers, topics=topics, raw=raw)
        kept = {name: self._nodes[name].place.fetch(KEPT) for name in servers}
        write_metadata_log(servers, kept=kept, raw=raw, report=report)
        # It reads the same logs, and finds the same damages.
        write_server_disks(servers, raw)
        return report

    @abstractmethod
    def _equip(self, nodes: tuple[KafkaNode, ...]) -> Mapping[NodeName, Software]:
        """The software of each node that is no server."""

    def _configure(self, node: ProcessNode) -> None:
        if node.name in self._ensemble.nodes:
            self._ensemble.configure(node, route=self._route)
        else:
            super()._configure(node)

    def _also_found(self, node: NodeName) -> str:
        return self._ensemble.found_by(node, route=self._route)

    def _await_role(self, role: str, members: Sequence[NodeName]) -> None:
        if role == Role.ZOOKEEPER:
            self._ensemble.await_led(lambda: self._running(role))
        else:
            super()._await_role(role, members)

    def _address(self, node: NodeName) -> Address:
        """Return the address at which the harness finds a node: always the direct one."""
        if node in self._ensemble.nodes:
            return self._ensemble.address(node)
        return super()._address(node)

    def _answers_on(
        self,
        node: NodeName,
        address: Address,
        *,
        timeout_s: float,
        opened: Callable[[], socket.socket] = socket.socket,
    ) -> bool:
        of_ensemble = node in self._ensemble.nodes
        asks = is_answered_on(self._ensemble.client_ports) if of_ensemble else is_answered
        return asks(node, address, timeout_s=timeout_s, opened=opened)

    def _node_with(self, endpoints: Sequence[str]) -> NodeName | None:
        return node_with(endpoints, self._names(Role.BROKER))

    def _await_session_end(self, broker: NodeName) -> None:
        """Wait until its own znode is gone, as long as its session may last; then it is tried."""
        bound_s = session_timeout_ms(self._spec) / 1000 + _SLACK_S
        deadline = time.monotonic() + bound_s
        while time.monotonic() < deadline:
            try:
                found = _registered_by(self._reader, self.broker_id(broker))
                if found is None or self._node_with(found) != broker:
                    return
            except HarnessError:
                return  # no server answers: it waits for one itself
            time.sleep(_POLL_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Metadata:
    """The content of the znodes, read one soon after the other."""

    controller: int | None
    broker_epochs: Mapping[int, int]
    endpoints: Mapping[int, tuple[str, ...]]
    """The listeners of each broker, as `NAME://HOST:PORT`."""
    partitions: Mapping[str, PartitionView]
    """The partitions by key; one whose state is not there yet has no leader and no ISR."""
    topic_ids: Mapping[str, str]


def _metadata_of(reader: ZnodeReader) -> _Metadata:
    """Read it; HarnessError if no server answers."""
    ids, topics, controller = reader.read(
        [children_of(_IDS), children_of(_TOPICS), data_of(_CONTROLLER)]
    )
    brokers = sorted(map(int, _children(ids)))
    names = sorted(_children(topics))
    found = reader.read(
        [
            *(data_of(f"{_IDS}/{broker}") for broker in brokers),
            *(data_of(f"{_TOPICS}/{name}") for name in names),
        ]
    )
    broker_nodes, topic_nodes = found[: len(brokers)], found[len(brokers) :]
    stated = {name: _stated(node) for name, node in zip(names, topic_nodes, strict=True)}
    replicas = {
        (name, int(partition)): tuple(ids)
        for name, topic in stated.items()
        for partition, ids in sorted(topic.get("partitions", {}).items())
    }
    states = reader.read(
        [data_of(f"{_TOPICS}/{name}/partitions/{number}/state") for name, number in replicas]
    )
    return _Metadata(
        controller=_broker_in(controller),
        broker_epochs={
            broker: node.czxid
            for broker, node in zip(brokers, broker_nodes, strict=True)
            if node is not None
        },
        endpoints={
            broker: tuple(_stated(node).get("endpoints", ()))
            for broker, node in zip(brokers, broker_nodes, strict=True)
        },
        partitions={
            f"{name}-{number}": _partition(_stated(state), replicas[name, number])
            for (name, number), state in zip(replicas, states, strict=True)
        },
        topic_ids={
            str(topic["topic_id"]): name for name, topic in stated.items() if "topic_id" in topic
        },
    )


def _controller_of(reader: ZnodeReader) -> int | None:
    """Return the broker that `/controller` names; HarnessError if no server answers."""
    (found,) = reader.read([data_of(_CONTROLLER)])
    return _broker_in(found)


def _registered_by(reader: ZnodeReader, broker: int) -> tuple[str, ...] | None:
    """Return the listeners registered under this id, None without; HarnessError: no answer."""
    (found,) = reader.read([data_of(f"{_IDS}/{broker}")])
    return None if found is None else tuple(_stated(found).get("endpoints", ()))


def _children(node: ZnodeRead | None) -> tuple[str, ...]:
    return () if node is None else node.children


def _stated(node: ZnodeRead | None) -> Mapping[str, Any]:
    if node is None or not node.data:
        return {}
    stated: Mapping[str, Any] = json.loads(node.data)
    return stated


def _broker_in(node: ZnodeRead | None) -> int | None:
    broker = int(_stated(node).get("brokerid", -1))
    return broker if broker >= 0 else None


def _partition(state: Mapping[str, Any], replicas: tuple[int, ...]) -> PartitionView:
    leader = int(state.get("leader", -1))
    return PartitionView(
        leader=leader if leader >= 0 else None, isr=tuple(state.get("isr", ())), replicas=replicas
    )
