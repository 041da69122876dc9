"""The parts by which simulated clusters of the two generations differ.

A cluster in virtual time (`SimulatedCluster`) is put together of a kit, an observer and the asker
of its operator (`Administration`). Observer and asker are the same for both generations, but for
the sight that the kit gives the observer.
"""

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from fencepost.clusters.identities import Identities
from fencepost.clusters.kafka_port import BrokersSpec, ClusterView
from fencepost.clusters.node_port.effects import Node
from fencepost.clusters.port import NodeName, SystemView
from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.messages.client import MetadataResponse
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.simulated.append_times import AppendTimes
from fencepost.clusters.simulation.disk import Disk
from fencepost.clusters.simulation.world import World

if TYPE_CHECKING:
    from fencepost.clusters.witness.witness import (
        WitnessReport,  # with pyarrow, which a trial does not take
    )


class Sight(Protocol):
    """The state that a generation shows: brokers' answers, and what else it can be asked for."""

    @property
    def shown(self) -> SystemView | None:
        """The view of the last round; None: nothing was shown."""

    def view(self, now: int, answers: Mapping[int, MetadataResponse]) -> ClusterView | None:
        """Return the view at the end of a round, by the answers of brokers' hosts."""

    @property
    def parts(self) -> tuple[object, ...]:
        """Return the parts of `shown`, the same ones as before where nothing has changed."""

    def controller(self, claims: int) -> int:
        """Return the host of the active controller as it is known now, or -1.

        `claims`: the host that called itself the leader of the quorum last, or -1.
        """

    def is_up(self, view: ClusterView | None, brokers: Collection[int]) -> bool:
        """Return whether a cluster that starts is up: all brokers serve, and one controls."""

    def latest_registration(self, broker: NodeName) -> int | None:
        """Return a number that grows with its registrations, or -1; None: it cannot be seen."""

    def recorded(self, raw: Path) -> AbstractContextManager[object]:
        """Record in `raw`, while entered, what is shown besides the answers of nodes."""


class Kit(Protocol):
    """How the nodes of a generation are made, and what they are told."""

    @property
    def make(self) -> str:
        """The name of its make, for a manifest."""

    @property
    def level_name(self) -> str:
        """The name of the protocol's level there."""

    @property
    def level(self) -> int:
        """The level of the protocol at the start."""

    @property
    def world(self) -> World:
        """The world of the cluster."""

    @property
    def spec(self) -> BrokersSpec:
        """The specification that it was built from."""

    @property
    def rules(self) -> Rules:
        """The rules that its nodes keep."""

    @property
    def configurations(self) -> Mapping[NodeName, Configuration]:
        """The configuration of each node of our own, those that others need first."""

    @property
    def identities(self) -> Identities:
        """The ids of all nodes, which are the numbers of their hosts at first."""

    @property
    def sight(self) -> Sight:
        """How the cluster is seen."""

    @property
    def others(self) -> str:
        """The role of the nodes that brokers need: they start first, and stop last."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables of evidence that a recording sets out to fill."""

    @property
    def ignored_settings(self) -> tuple[str, ...]:
        """The settings of the spec that mean nothing to these nodes."""

    @property
    def view_ids(self) -> Mapping[NodeName, int]:
        """The ids of the nodes that a view shows, as they are now."""

    def settings(self, node: NodeName) -> Mapping[str, str]:
        """Return what a node was told at first, by Kafka's names; nothing of one of no ours."""

    def configured(self, node: NodeName, given: Mapping[str, str]) -> Configuration:
        """Return the configuration of a node that was given this later. Raises UsageError."""

    def built(self, node: NodeName, configuration: Configuration) -> Node:
        """Make the node of a new incarnation."""

    def first_files(self, node: NodeName) -> dict[str, Any]:
        """Return what is on a node's disk at first."""

    def formatted_files(self, node: NodeName, *, directory_id: int) -> dict[str, Any]:
        """Return what formatting a disk writes. `directory_id` 0: a new one."""

    def keep_metadata(
        self, disks: Mapping[NodeName, Disk], raw: Path, *, times: AppendTimes
    ) -> None:
        """Keep in `raw` what nodes drop of their metadata logs from now on, for the witness."""

    def write_witness(
        self,
        disks: Mapping[NodeName, Disk],
        raw: Path,
        *,
        topics: Collection[str],
        times: AppendTimes,
    ) -> "WitnessReport":
        """Write what the disks hold as raw tables."""
