"""What a fault is to the interpreter: a word that does it, proof of its effect, a word that heals.

An act's function returns its evidence in words, or raises HarnessError: an effect that was not seen
is no fault. Each kind of fault stands in a file of its own beside this one.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from clusters.port import Cluster, NodeName, NodeState
from history.failure import HarnessError
from nemesis.steps import Act

__all__ = ["Fault", "one_by_one", "require_state"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A kind of fault on some nodes."""

    name: str
    """Also the word of a play that does it."""
    healed_by: str
    """The word that heals it."""
    abilities: tuple[type, ...]
    """Ports that the cluster must offer."""
    inject: Callable[[Cluster, Sequence[NodeName], Act], str]
    """(cluster, the nodes, the whole act) → evidence that it took effect."""
    mends_itself: bool = False
    """What it does ends with what `healed_by` would do; what is left is to see the node back."""


def one_by_one(
    inject: Callable[[Cluster, NodeName, Act], str],
) -> Callable[[Cluster, Sequence[NodeName], Act], str]:
    """The same done to one node after the other."""

    def inject_all(cluster: Cluster, nodes: Sequence[NodeName], act: Act) -> str:
        return "; ".join([inject(cluster, node, act) for node in nodes])

    return inject_all


def require_state(cluster: Cluster, node: NodeName, expected: NodeState) -> None:
    """HarnessError unless the host sees the node in this state."""
    found = cluster.state(node)
    if found is not expected:
        raise HarnessError(f"{node}: expected it {expected}, found it {found}")
