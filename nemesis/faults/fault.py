"""What a fault is to the interpreter: a word that does it, proof of its effect, a word that heals.

An act's function returns its evidence in words, or raises HarnessError: an effect that was not seen
is no fault. Each kind of fault stands in a file of its own beside this one.
"""

from collections.abc import Callable
from dataclasses import dataclass

from clusters.port import Cluster, NodeName, NodeState
from history.failure import HarnessError
from nemesis.steps import Act

__all__ = ["Fault", "require_state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A kind of fault on one node."""

    name: str
    """Also the word of a play that does it."""
    healed_by: str
    """The word that heals it."""
    abilities: tuple[type, ...]
    """Ports that the cluster must offer."""
    inject: Callable[[Cluster, NodeName, Act], str]
    """(cluster, node, the whole act) → evidence that it took effect."""
    mends_itself: bool = False
    """What it does ends with what `healed_by` would do; what is left is to see the node back."""


def require_state(cluster: Cluster, node: NodeName, expected: NodeState) -> None:
    """HarnessError unless the host sees the node in this state."""
    found = cluster.state(node)
    if found is not expected:
        raise HarnessError(f"{node}: expected it {expected}, found it {found}")
