"""The nodes, keys and replicas that will exist, which are all that a play may name."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from fencepost.clusters.port import OWN_ROLES, NodeName, NodeRole, NodeRoles


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The cast of a play, known before anything starts."""

    nodes: tuple[NodeName, ...]
    system: str = "kafka"
    """The name of the cluster's system, whose conditions a play may await."""
    roles: tuple[NodeRole, ...] = ()
    """The roles of the nodes; a play cannot address a node that has none of them."""
    node_roles: NodeRoles = OWN_ROLES
    """The roles that each of them has."""
    keys: tuple[str, ...] = ()
    broker_ids: tuple[int, ...] = ()
    replicas: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The replicas of the keys for which the scenario states them: by key, broker numbers."""
    spares: frozenset[NodeName] = frozenset()
    """The nodes that are no members until they are added."""
    fixed: frozenset[NodeName] = frozenset()
    """The nodes that can be neither added nor removed: the voters of a static quorum."""
    release: str = ""
    """The release that every node starts on; empty: not stated, so any is taken for possible."""
    metadata_version: str = ""
    """The metadata.version that the cluster starts at; empty: the release's own."""
