"""What a play may name: the nodes, keys and replicas that will exist."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from clusters.port import NodeName

__all__ = ["Stage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The cast of a play, known before anything starts."""

    nodes: tuple[NodeName, ...]
    keys: tuple[str, ...]
    broker_ids: tuple[int, ...]
    replicas: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """Of the keys whose replicas the scenario states: by key, broker numbers."""
