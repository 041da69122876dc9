"""A KRaft cluster of any release of Apache Kafka, as processes."""

import time
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Final

from fencepost.clusters.hosts.place import Site
from fencepost.clusters.kafka.admin import KafkaAdmin, Nodes
from fencepost.clusters.kafka.configuration import (
    KafkaNode,
    first_members,
    properties,
    refuse_impossible,
)
from fencepost.clusters.kafka.features import Levels, finalised_by, moves, update_features
from fencepost.clusters.kafka.formatting import first_voters, new_id
from fencepost.clusters.kafka.members import Acts, Members
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka.quorum_processes import QuorumProcesses
from fencepost.clusters.kafka.readiness import await_first_voters
from fencepost.clusters.kafka.software import KafkaSoftware
from fencepost.clusters.kafka.voters import VoterSeat, checkpoint_of
from fencepost.clusters.kafka_port import KafkaSpec, Quorum, Role
from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.hardships import WrongClocks
from fencepost.clusters.processes.node import ProcessNode
from fencepost.clusters.protocol.metadata_records import Definitions
from fencepost.clusters.witness.definitions import definitions_of
from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import VersionChange

_ATTEMPT_S: Final = 5.0
_POLL_S: Final = 0.05


class KafkaCluster(WrongClocks, QuorumProcesses):
    """`clusters.kafka_port.BrokerCluster` with all its abilities."""

    def __init__(self, spec: KafkaSpec, *, prepared: KafkaPrepared, site: Site) -> None:
        refuse_impossible(spec)
        self._prepared = prepared
        cluster_id = new_id()
        self._software: dict[NodeName, KafkaSoftware] = {}
        super().__init__(
            spec, site=site, software=lambda nodes: self._equip(nodes, cluster_id=cluster_id)
        )
        self._upgrades = _Upgrades(
            prepared,
            clock=site.clock,
            admin=self._admin,
            leader=self._leader,
            brokers=lambda: self._running(Role.BROKER),
        )
        acts = Acts(
            node=lambda name: self._listed[name],
            state=self.state,
            start=self.start_node,
            stop=lambda name, timeout_s: self.stop_node(name, timeout_s=timeout_s),
            view=self.view,
            controllers=lambda: self._running(Role.CONTROLLER),
        )
        first = self._first_members()
        self._members = Members(first, cluster_id=cluster_id, admin=self._admin, acts=acts)

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test: release, digest of its jars, metadata version, Java."""
        release, java = self._prepared.release, self._prepared.java
        return {
            "kafka": release.version,
            "kafka_release": release.name,
            "kafka_jars_sha256": release.digest,
            "metadata_version": self._prepared.bootstrap.metadata_version,
            "java": java.version,
            "java_build": java.build,
            "java_source": java.source,
        }

    def wipe_node_by_tool(self, node: NodeName) -> None:
        """Delete all data of a node that is down; its release's tool formats it. That is all.

        The harness does not sync what the tool leaves unsynced.
        """
        self._nodes[node].empty()
        self._sync_disk(node)
        self._nodes[node].format_by_tool()

    def change_release(self, node: NodeName, release: str) -> str:
        """Have a node that is down run this release from its next start on; evidence in words."""

        def use(prepared: KafkaPrepared) -> str:
            before = self._software[node]
            self._software[node] = self._nodes[node].software = before.of(prepared)
            self._configure(self._nodes[node])
            return before.prepared.release.version

        return self._upgrades.change_release(node, release, use)

    def changes(self) -> tuple[VersionChange, ...]:
        """Return the changes of the versions under test so far, in order."""
        return self._upgrades.changes()

    def finalise(self, version: str, *, within_s: float) -> str:
        """Have the feature levels of this metadata.version; returns once every broker has them."""
        return self._upgrades.finalise(version, within_s=within_s)

    def members(self) -> frozenset[NodeName]:
        """The nodes that belong to the cluster now, whether they run or not."""
        return self._members.now()

    def add_node(self, node: NodeName, *, within_s: float) -> str:
        """Start a node that is no member, and have it taken for one: a broker, a voter."""
        return self._members.add(node, within_s=within_s)

    def remove_node(self, node: NodeName, *, within_s: float) -> str:
        """Have a member give up its replicas or its vote, stop it, and have it forgotten."""
        return self._members.remove(node, within_s=within_s)

    def await_follower(self, controller: NodeName, *, within_s: float) -> str:
        """Wait until it has what the leader appended after this call; evidence in words."""
        return self._members.await_follower(controller, within_s=within_s)

    def _properties(self, node: ProcessNode, *, nodes: tuple[KafkaNode, ...]) -> dict[str, str]:
        return properties(
            self._spec,
            self._listed[node.name],
            nodes=nodes,
            data=node.data,
            version=self._software[node.name].prepared.release.version,
            route=self._route,
        )

    def _definitions(self) -> Definitions:
        return definitions_of(chain.from_iterable(one.jars for one in self._prepared.releases))

    def _await_quorum(self) -> None:
        if self._spec.quorum is Quorum.DYNAMIC:
            await_first_voters(self._nodes, lambda: self._running(Role.CONTROLLER))

    def _equip(
        self, nodes: tuple[KafkaNode, ...], *, cluster_id: str
    ) -> Mapping[NodeName, KafkaSoftware]:
        first = first_members(self._spec, nodes)
        seats = _seats(self._spec, first, template=self._prepared.bootstrap.voters)
        self._software = {
            node.name: KafkaSoftware(
                node=node,
                prepared=self._prepared,
                cluster_id=cluster_id,
                options=self._spec.java_options,
                seat=seats.get(node.name),
            )
            for node in nodes
        }
        return self._software


def _seats(
    spec: KafkaSpec, nodes: tuple[KafkaNode, ...], *, template: bytes | None
) -> dict[NodeName, VoterSeat]:
    """Return each controller's seat in the first voter set; no seats in a static quorum."""
    if spec.quorum is Quorum.STATIC:
        return {}
    assert template is not None, "prepared for a static quorum"
    voters = first_voters(nodes)
    checkpoint = checkpoint_of(template, voters)
    controllers = (node.name for node in nodes if node.votes)
    return {
        name: VoterSeat(directory_id=voter.directory_id, checkpoint=checkpoint)
        for name, voter in zip(controllers, voters, strict=True)
    }


class _Upgrades:
    """The abilities `clusters.evolution.ChangesReleases` and `Finalises`, for Kafka's clusters.

    Binaries and metadata.version move apart, as an operator moves them: a node that is down gets
    another release for its next start, on the disk that it has; and the metadata.version is
    finalised when every node knows it. What became of the versions under test is kept, with its
    time.

    `prepared`: the release that every node starts on, and the others that the run may use.
    """

    def __init__(
        self,
        prepared: KafkaPrepared,
        *,
        clock: Clock,
        admin: KafkaAdmin,
        leader: Nodes,
        brokers: Nodes,
    ) -> None:
        self._prepared = prepared
        self._clock = clock
        self._admin = admin
        self._leader = leader
        self._brokers = brokers
        self._changes: list[VersionChange] = []

    def changes(self) -> tuple[VersionChange, ...]:
        """Return the changes of the versions under test so far, in order."""
        return tuple(self._changes)

    def change_release(
        self, node: NodeName, release: str, use: Callable[[KafkaPrepared], str]
    ) -> str:
        """Have the node run the release from its next start on; `use` says what it ran before."""
        all_of_run = {self._prepared.release.name: self._prepared, **self._prepared.also}
        if release not in all_of_run:
            there = ", ".join(all_of_run)
            raise HarnessError(f"Kafka {release} was not prepared for this run; there are: {there}")
        found = all_of_run[release]
        before = use(found)
        self._note(node, found.release.version)
        return f"{node}: was of Kafka {before}, and is of {found.release.version}"

    def finalise(self, version: str, *, within_s: float) -> str:
        """Have the levels of that metadata.version; returns once every running broker has them."""
        wanted = self._prepared.levels.get(version)
        if wanted is None:
            raise HarnessError(f"metadata.version {version} was not prepared for this run")
        deadline = time.monotonic() + within_s
        now = self._levels_now(deadline)
        moved = moves(now, wanted)
        said = ", ".join(f"{name} {now.get(name, 0)} → {moved[name]}" for name in moved)
        if not moved:
            return f"metadata.version {version} was finalised already"
        write = update_features(now, moved, timeout_s=_ATTEMPT_S)
        asked, _ = self._admin.insist(
            write, what=f"finalise {version} ({said})", via=None, deadline=deadline
        )
        for name, level in moved.items():
            self._note(name, f"level {level}, of metadata.version {version}")
        seen = self._await_levels(moved, deadline)
        return f"{asked} finalised {said}; shown by {seen}"

    def _levels_now(self, deadline: float) -> Levels:
        while True:
            for levels in finalised_by(self._leader()).values():
                return levels
            if time.monotonic() > deadline:
                raise HarnessError("no active controller reported the finalised feature levels")
            time.sleep(_POLL_S)

    def _await_levels(self, moved: Levels, deadline: float) -> str:
        """Wait until all brokers that run show these levels; their names."""
        while True:
            running = self._brokers()
            shown = finalised_by(running)
            lacking = {name for name in running if not _has(shown.get(name), moved)}
            if not lacking:
                return ", ".join(sorted(running))
            if time.monotonic() > deadline:
                raise HarnessError(
                    f"{', '.join(sorted(lacking))} did not show the new feature levels in time"
                )
            time.sleep(_POLL_S)

    def _note(self, subject: str, version: str) -> None:
        change = VersionChange(time_ns=self._clock.now_ns(), subject=subject, version=version)
        self._changes.append(change)


def _has(levels: Mapping[str, int] | None, moved: Levels) -> bool:
    return levels is not None and all(levels.get(one, 0) == to for one, to in moved.items())
