"""The change of a partition's state."""

from dataclasses import dataclass

from fencepost.clusters.node_port.storage import PartitionKey
from fencepost.clusters.reference.nodes.image import PartitionImage


@dataclass(frozen=True, slots=True)
class StateChange:
    """A partition before (None: it is new) and after."""

    key: PartitionKey
    old: PartitionImage | None
    new: PartitionImage
