"""The changes that a cluster may undergo while it runs: releases, feature levels, members.

Abilities like those of `clusters.port`: each a small Protocol, asked for with `isinstance`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Protocol, runtime_checkable

from fencepost.clusters.port import Cluster, NodeName
from fencepost.clusters.setting_changes import SettingChange
from fencepost.history.manifest import VersionChange


@runtime_checkable
class ChangesReleases(Protocol):
    """The ability to run a node on another release, on the disk that it has."""

    def change_release(self, node: NodeName, release: str) -> str:
        """Have a node that is down run this release from its next start on; evidence in words."""

    def changes(self) -> tuple[VersionChange, ...]:
        """Return the changes of the versions under test so far, in order."""


@runtime_checkable
class ChangesSettings(Protocol):
    """The ability to have a node configured otherwise than it was."""

    def change_settings(self, node: NodeName, settings: Mapping[str, str]) -> str:
        """Have a node run with these properties from its next start on; evidence in words.

        Raises HarnessError if its software does not take them.
        """

    def setting_changes(self) -> Sequence[SettingChange]:
        """Return the changes so far, in order."""


@runtime_checkable
class Finalises(Protocol):
    """The ability to move the cluster's metadata.version, and the levels of the other features."""

    def finalise(self, version: str, *, within_s: float) -> str:
        """Ask for the levels of a new cluster of this metadata.version; evidence in words.

        Returns once every broker that runs shows them. HarnessError with the cluster's words if
        they are refused or not seen in time.
        """


@runtime_checkable
class Follows(Protocol):
    """The ability to say whether a controller is of use to its quorum again."""

    def await_follower(self, controller: NodeName, *, within_s: float) -> str:
        """Wait until it has what the leader appended after this call; evidence in words."""


@runtime_checkable
class ChangesIds(Protocol):
    """The ability of nodes to go on under another id than they began with."""

    @property
    def node_ids(self) -> Mapping[NodeName, int]:
        """The ids of all nodes; -1 for one that had several."""

    @property
    def last_ids(self) -> Mapping[NodeName, int]:
        """The present ids of nodes that had several."""


@runtime_checkable
class ChangesMembers(Protocol):
    """The ability to add and remove members. Each method returns evidence, or HarnessError."""

    def members(self) -> frozenset[NodeName]:
        """The nodes that belong to the cluster now, whether they run or not."""

    def add_node(self, node: NodeName, *, within_s: float) -> str:
        """Start a node that is no member, and have it taken for one: a broker, a voter."""

    def remove_node(self, node: NodeName, *, within_s: float) -> str:
        """Have a member give up its replicas or its vote, stop it, and have it forgotten."""


def members_of(cluster: Cluster) -> tuple[NodeName, ...]:
    """The nodes that belong to the cluster now, in their order: all, where that never changes."""
    if not _changes_members(type(cluster)):
        return cluster.nodes
    assert isinstance(cluster, ChangesMembers)
    members = cluster.members()
    return tuple(node for node in cluster.nodes if node in members)


@cache
def _changes_members(kind: type[Cluster]) -> bool:
    """Return whether clusters of this kind change members; cached, since every look asks."""
    return issubclass(kind, ChangesMembers)
