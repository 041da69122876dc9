"""The roles of nodes. A node is named for its role and its number in it: "broker-1"."""

from typing import Final

__all__ = ["BROKER", "CONTROLLER", "ZOOKEEPER", "role_of"]

BROKER: Final = "broker"
CONTROLLER: Final = "controller"
ZOOKEEPER: Final = "zookeeper"


def role_of(node: str) -> str:
    """Return the role of a node; of a client process ("producer-0") what it does."""
    return node.rpartition("-")[0]
