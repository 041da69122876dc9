"""The roles of nodes. A node is named for its role and its number in it: "broker-1".

It may have a second role, which the manifest states.
"""

from typing import Final

BROKER: Final = "broker"
CONTROLLER: Final = "controller"
ZOOKEEPER: Final = "zookeeper"


def role_of(node: str) -> str:
    """Return the role that a node is named for; of a client process ("producer-0") what it does."""
    return node.rpartition("-")[0]
