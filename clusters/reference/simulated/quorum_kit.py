"""A simulated cluster of the KRaft generation: controllers with a quorum, and brokers.

A simulated host has a number and no ports, and a combined node has two listeners: who asks says
which one is meant. What only controllers are asked goes to the controller. Of the rest, nodes ask
controllers as controllers, clients ask brokers, and an operator asks the active controller itself,
and any other node as a broker, which passes it on.
"""

from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from clusters.abilities import LinkEnd
from clusters.compiled import is_compiled
from clusters.kafka_port import KafkaSpec, Role, role_of
from clusters.node_port.effects import Effects, Node
from clusters.node_port.storage import META_PROPERTIES, MetaProperties
from clusters.port import NodeName
from clusters.reference.nodes.combined import CombinedNode
from clusters.reference.nodes.configuration import Configuration, S
from clusters.reference.nodes.control.active import REQUESTS
from clusters.reference.nodes.controller import ControllerNode
from clusters.reference.nodes.messages.control import DescribeQuorumRequest
from clusters.reference.nodes.messages.quorum import FetchSnapshotRequest, VoteRequest
from clusters.reference.nodes.quorum_broker import quorum_broker
from clusters.reference.nodes.rules import Rules
from clusters.reference.simulated.append_times import AppendTimes
from clusters.reference.simulated.cluster import (
    CLIENTS_FROM,
    HARNESS_FROM,
    START_NS_MAX,
    SimulatedCluster,
)
from clusters.reference.simulated.nodes import CLUSTER_ID, configurations, ignored
from clusters.reference.simulated.notebook import RecordedNotebook
from clusters.reference.simulated.observing import WatchingNode
from clusters.reference.specs import DEFAULTS, level_of, own_settings
from clusters.simulation.network import Latency
from clusters.simulation.world import World

_OF_CONTROLLERS: Final = frozenset(
    {*range(VoteRequest.kind, FetchSnapshotRequest.kind + 1, 2), DescribeQuorumRequest.kind}
)
"""The requests that only controllers are asked."""
_KEPT: Final = "kept"
"""The directory, in a run's raw one, of what nodes drop of their metadata logs."""


def build(
    spec: KafkaSpec,
    *,
    seed: int,
    rules: Rules | None = None,
    latency: Latency | None = None,
    digest: bool = True,
    witnessed: bool = False,
) -> "SimulatedQuorumCluster":
    """A cluster whose nodes are formatted and down, in a world of its own.

    Raises UsageError if the spec asks for what there is not.
    """
    world = World(seed, latency=latency, digest=digest, witnessed=witnessed)
    return SimulatedQuorumCluster(spec, world=world, seed=seed, rules=rules or Rules())


class SimulatedQuorumCluster(SimulatedCluster):
    """`level`: the metadata.version that it starts with."""

    def __init__(self, spec: KafkaSpec, *, world: World, seed: int, rules: Rules) -> None:
        self._rules = rules
        self._quorum_spec = spec
        level = level_of(spec)
        self._configurations = configurations(spec, level=level, seed=seed)
        numbers = {name: one.node_id for name, one in self._configurations.items()}
        self._view_ids = {
            name: number for name, number in numbers.items() if role_of(name) is Role.BROKER
        }
        super().__init__(spec, world=world, level=level, nodes=numbers)

    @property
    def rules(self) -> Rules:
        """The rules that its nodes keep."""
        return self._rules

    @property
    def configurations(self) -> Mapping[NodeName, Configuration]:
        """The configuration of each node."""
        return self._configurations

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of evidence that a recording of it sets out to fill."""
        seen = ("describes", "metadata_offsets", "quorum_claims")
        return (*seen, "metadata_log", "replicas", "replica_records", "node_settings")

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test, for a manifest; `trace`: the digest of events so far."""
        found = {
            "cluster": "simulated",
            "metadata_version": str(self.level),
            "events": str(self.world.event_count),
            "virtual_s": f"{self.world.now_ns / S:.3f}",
            "trace": self.world.digest(),
            "simulator": "compiled" if is_compiled() else "plain Python",
        }
        off = [field.name for field in fields(Rules) if not getattr(self.rules, field.name)]
        return found | ({"rules_off": ", ".join(off)} if off else {})

    @property
    def ignored_settings(self) -> tuple[str, ...]:
        """Return the settings of the spec that mean nothing to these nodes."""
        spec = self._quorum_spec
        return ignored({**spec.settings, **spec.controller_settings, **spec.broker_settings})

    def settings(self, node: NodeName) -> Mapping[str, str]:
        """Return what a node was told, by Kafka's names."""
        return {
            **DEFAULTS,
            **own_settings(self._quorum_spec, *map(Role, self.node_roles.of(node))),
            "node.id": str(self.broker_id(node)),
        }

    def start(self) -> None:
        """Start every node, and let the world go on until all brokers show each other unfenced."""
        self._start_all()
        wanted = frozenset(self.brokers)
        self._until(
            lambda: (
                self.watch.view is not None
                and self.watch.view.brokers == self.watch.view.serving == wanted
            ),
            within_ns=START_NS_MAX,
            otherwise="not all brokers were unfenced a minute after the start",
        )

    def stop(self) -> None:
        """Stop every node: brokers first, as they take their leave from a controller."""
        self._stop_in_order((Role.BROKER, Role.CONTROLLER))

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """Kafka's ids of the brokers."""
        return self._view_ids

    def leader_now(self) -> NodeName | None:
        """The active controller as it said itself when it was asked last, or None."""
        leader_id = self.watch.leader_id
        return None if leader_id < 0 else self.node_of(leader_id)

    def links(self) -> tuple[LinkEnd, ...]:
        """Return links: nodes to controllers, brokers and clients to brokers; none to itself."""
        controllers = self.node_roles.among(self.nodes, Role.CONTROLLER)
        brokers = self.node_roles.among(self.nodes, Role.BROKER)
        between = [(source, target) for target in controllers for source in self.nodes]
        between += [(source, target) for target in brokers for source in brokers]
        outside = [(NodeName("clients"), target) for target in brokers]
        return tuple(
            LinkEnd(source=source, target=target, port=0)
            for source, target in dict.fromkeys((*between, *outside))
            if source != target
        )

    def recorded(self, raw: Path, *, topics: Collection[str]) -> AbstractContextManager[object]:
        """Record in `raw`, while entered, what brokers and controllers show."""
        notebook = RecordedNotebook(raw, topics=topics, node_of=self.node_of)
        self.watch.notebook = notebook
        return notebook

    def keep_metadata(self, raw: Path, *, times: AppendTimes) -> None:
        """Keep in `raw` what nodes drop of their metadata logs from now on, for the witness."""
        # With codecs, which a trial does not take.
        from clusters.reference.simulated.disk_files import keep_cuts  # noqa: PLC0415

        for node in self.nodes:
            keep_cuts(self.host(node).disk, raw / _KEPT / node, times)

    def write_witness(
        self, raw: Path, *, topics: Collection[str], times: AppendTimes
    ) -> tuple[int, int]:
        """Write what the disks hold as raw tables; how many metadata records, and replicas'."""
        # With pyarrow, which a trial does not take.
        from clusters.reference.simulated.witness import write_simulated_witness  # noqa: PLC0415

        report = write_simulated_witness(
            {node: self.host(node).disk for node in self.nodes},
            voters=next(iter(self._configurations.values())).voters,
            kept=raw / _KEPT,
            topics=topics,
            times=times,
            raw=raw,
        )
        return sum(report.metadata_record_counts.values()), report.replica_record_count

    def _built(self, node: NodeName) -> Node:
        configuration = self._configuration(node)
        if self.node_roles.has(node, Role.CONTROLLER) and self.node_roles.has(node, Role.BROKER):
            return TwoListeners(
                CombinedNode(configuration, self._rules),
                asker=self.world.network.number_of,
                clients_from=CLIENTS_FROM,
                operators_from=HARNESS_FROM,
            )
        if configuration.is_controller:
            return ControllerNode(configuration, self._rules)
        return quorum_broker(configuration, self._rules)

    def _formatted(self, node: NodeName, *, directory_id: int) -> dict[str, Any]:
        node_id = self._configurations[node].node_id
        drawn = directory_id or self.world.new_id()
        return {
            META_PROPERTIES: MetaProperties(
                cluster_id=CLUSTER_ID, node_id=node_id, directory_id=drawn
            )
        }

    def _observer(self) -> WatchingNode:
        controllers, brokers = self._running(Role.CONTROLLER), self._running(Role.BROKER)
        return WatchingNode(lambda: (controllers(), brokers()))

    def _active_controller(self) -> int:
        return self.watch.leader_id


class TwoListeners:
    """`clusters.node_port.effects.Node`: a combined node behind its two listeners.

    `asker`: the number of the host that a request comes from, by its source. Hosts from
    `clients_from` on are clients, from `operators_from` on operators; those below are nodes.
    """

    def __init__(
        self,
        node: CombinedNode,
        *,
        asker: Callable[[int], int],
        clients_from: int,
        operators_from: int,
    ) -> None:
        self.node: Final = node
        self._asker = asker
        self._clients_from = clients_from
        self._operators_from = operators_from

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Hand an event to the node, and a request to the listener that is meant."""
        at_controller = kind in _OF_CONTROLLERS or (
            kind in REQUESTS and self._is_for_controller(source)
        )
        handle = self.node.vote if at_controller else self.node.handle
        handle(now, source, kind, message, effects)

    def _is_for_controller(self, source: int) -> bool:
        number = self._asker(source)
        if number < self._clients_from:
            return True
        return number >= self._operators_from and self.node.leads
