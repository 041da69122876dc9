"""The nodes of a simulated cluster of the KRaft generation: controllers with a quorum, and brokers.

A simulated host has a number and no ports, and a combined node has two listeners: who asks says
which one is meant. What only controllers are asked goes to the controller. Of the rest, nodes ask
controllers as controllers, clients ask brokers, and an operator asks the active controller itself,
and any other node as a broker, which passes it on.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fencepost.clusters.identities import Identities
from fencepost.clusters.kafka_port import KafkaSpec, Role
from fencepost.clusters.node_port.effects import Effects, Node
from fencepost.clusters.node_port.storage import META_PROPERTIES, MetaProperties
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.combined import CombinedNode
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.control.active import REQUESTS
from fencepost.clusters.reference.nodes.controller import ControllerNode
from fencepost.clusters.reference.nodes.messages.control import DescribeQuorumRequest
from fencepost.clusters.reference.nodes.messages.quorum import FetchSnapshotRequest, VoteRequest
from fencepost.clusters.reference.nodes.quorum_broker import quorum_broker
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.simulated.append_times import AppendTimes
from fencepost.clusters.reference.simulated.cluster import (
    CLIENTS_FROM,
    HARNESS_FROM,
    SimulatedCluster,
)
from fencepost.clusters.reference.simulated.nodes import (
    CLUSTER_ID,
    configurations,
    ignored,
    numbers_in,
)
from fencepost.clusters.reference.simulated.observing import AnsweredSight
from fencepost.clusters.reference.specs import DEFAULTS, level_of, own_settings
from fencepost.clusters.simulation.disk import Disk
from fencepost.clusters.simulation.network import Latency
from fencepost.clusters.simulation.world import World
from fencepost.history.failure import UsageError

if TYPE_CHECKING:
    from fencepost.clusters.witness.witness import WitnessReport

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
) -> SimulatedCluster:
    """A cluster whose nodes are formatted and down, in a world of its own.

    Raises UsageError if the spec asks for what there is not.
    """
    world = World(seed, latency=latency, digest=digest, witnessed=witnessed)
    return SimulatedCluster(QuorumKit(spec, world=world, seed=seed, rules=rules or Rules()))


class QuorumKit:
    """`Kit` of the KRaft generation. `level`: the metadata.version that the cluster starts with."""

    make = "simulated"
    level_name = "metadata_version"
    others: Final[str] = Role.CONTROLLER
    tables = (
        *("describes", "metadata_offsets", "quorum_claims"),
        *("metadata_log", "replicas", "replica_records", "node_settings"),
    )

    def __init__(self, spec: KafkaSpec, *, world: World, seed: int, rules: Rules) -> None:
        self.world = world
        self.spec = spec
        self.rules = rules
        self.level = level_of(spec)
        self.configurations = configurations(spec, level=self.level, seed=seed)
        self.identities = Identities({n: one.node_id for n, one in self.configurations.items()})
        self.sight = AnsweredSight()
        self.view_ids = spec.view_ids
        self.ignored_settings = ignored(
            {**spec.settings, **spec.controller_settings, **spec.broker_settings}
        )

    def settings(self, node: NodeName) -> Mapping[str, str]:
        """Return what a node was told at first, by Kafka's names."""
        return {
            **DEFAULTS,
            **own_settings(self.spec, *map(Role, self.spec.node_roles.of(node))),
            "node.id": str(self.configurations[node].node_id),
        }

    def configured(self, node: NodeName, given: Mapping[str, str]) -> Configuration:
        """Return the configuration of a node that was given this later. Raises UsageError."""
        if unknown := ignored(given):
            raise UsageError(f"our own nodes do not know the properties {', '.join(unknown)}")
        try:
            return replace(self.configurations[node], **numbers_in(given))
        except ValueError as error:
            raise UsageError(str(error)) from None

    def built(self, node: NodeName, configuration: Configuration) -> Node:
        """Make the node of a new incarnation."""
        roles = self.spec.node_roles
        if roles.has(node, Role.CONTROLLER) and roles.has(node, Role.BROKER):
            return TwoListeners(
                CombinedNode(configuration, self.rules),
                asker=self.world.network.number_of,
                clients_from=CLIENTS_FROM,
                operators_from=HARNESS_FROM,
            )
        if configuration.is_controller:
            return ControllerNode(configuration, self.rules)
        return quorum_broker(configuration, self.rules)

    def first_files(self, node: NodeName) -> dict[str, Any]:
        """Return what formatting has written."""
        return self.formatted_files(node, directory_id=0)

    def formatted_files(self, node: NodeName, *, directory_id: int) -> dict[str, Any]:
        """Return what formatting a disk writes. `directory_id` 0: a new one."""
        node_id = self.configurations[node].node_id
        drawn = directory_id or self.world.new_id()
        return {
            META_PROPERTIES: MetaProperties(
                cluster_id=CLUSTER_ID, node_id=node_id, directory_id=drawn
            )
        }

    def keep_metadata(
        self, disks: Mapping[NodeName, Disk], raw: Path, *, times: AppendTimes
    ) -> None:
        """Keep in `raw` what nodes drop of their metadata logs from now on, for the witness."""
        # With codecs, which a trial does not take.
        from fencepost.clusters.reference.simulated.disk_files import keep_cuts  # noqa: PLC0415

        for node, disk in disks.items():
            keep_cuts(disk, raw / _KEPT / node, times)

    def write_witness(
        self,
        disks: Mapping[NodeName, Disk],
        raw: Path,
        *,
        topics: Collection[str],
        times: AppendTimes,
    ) -> "WitnessReport":
        """Write what the disks hold as raw tables."""
        # With pyarrow, which a trial does not take.
        from fencepost.clusters.reference.simulated.witness import write_simulated_witness  # noqa: PLC0415

        return write_simulated_witness(
            disks,
            voters=next(iter(self.configurations.values())).voters,
            kept=raw / _KEPT,
            topics=topics,
            times=times,
            raw=raw,
        )


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
