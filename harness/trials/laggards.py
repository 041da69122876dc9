"""Brokers that hear late of decisions, one after the other, and stay unfenced meanwhile.

A broker that is cut off from the controllers in both directions is soon fenced, and the others do
not wait for it. One that is told nothing, while its heartbeats arrive, counts as present for a
lease: a laggard shows what the others do before it knows.
"""

import random
from collections.abc import Callable
from typing import Final

from clusters.kafka_port import Role, role_of
from clusters.reference.simulated.cluster import SimulatedCluster
from harness.interpreter.interpreter import Interpreter
from nemesis.topology import Flows
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.partition import Partition

__all__ = ["Laggards"]

_S: Final = 1_000_000_000
_GAPS_S: Final = (0.2, 1.0)
_LATE_S: Final = (0.3, 1.6)
"""The span of a laggard's delay: shorter than a lease of a quick cluster."""
_NAME: Final = "laggard"


class Laggards:
    """The laggards of a trial, at most one at a time, from `begin` to `end`."""

    def __init__(self, cluster: SimulatedCluster, interpreter: Interpreter, *, seed: int) -> None:
        self._cluster = cluster
        self._interpreter = interpreter
        self._draw = random.Random(f"laggards/{seed}")  # noqa: S311  # to be repeated
        self._goes_on = False

    def begin(self) -> None:
        """Begin the laggards; the first one follows after a gap."""
        self._goes_on = True
        self._after(_GAPS_S, self._cut)

    def end(self) -> None:
        """End the laggards; a late broker hears of everything."""
        self._goes_on = False
        self._interpreter.perform(HealPartition(name=_NAME), end_s=0.0)

    def _cut(self) -> None:
        nodes = self._cluster.nodes
        late = self._draw.choice([node for node in nodes if role_of(node) is Role.BROKER])
        flows = {(node, late) for node in nodes if role_of(node) is Role.CONTROLLER}
        self._interpreter.perform(
            Partition(name=_NAME, cut=Flows(flows=frozenset(flows))), end_s=0.0
        )
        self._after(_LATE_S, self._mend)

    def _mend(self) -> None:
        self._interpreter.perform(HealPartition(name=_NAME), end_s=0.0)
        self._after(_GAPS_S, self._cut)

    def _after(self, bounds_s: tuple[float, float], what: Callable[[], None]) -> None:
        at_ns = self._cluster.world.now_ns + int(self._draw.uniform(*bounds_s) * _S)
        self._cluster.world.call(at_ns, lambda: what() if self._goes_on else None)
