"""Cuts in the network of a simulated world, where no frame has to be looked at for them."""

from collections.abc import Collection

from clusters.port import CLIENTS
from clusters.reference.simulated.cluster import SimulatedCluster
from nemesis.wire.rules import Flow

__all__ = ["WorldCutter"]


class WorldCutter:
    """A `harness.interpreter.cutting.Cutter` of nodes, whose links exist from the start."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def cut(self, name: str, flows: Collection[Flow]) -> str:
        """Let nothing pass in these flows."""
        del name
        self._cluster.world.network.block(self._numbers(flows))
        return "nothing is passed on"

    def mend(self, name: str, freed: Collection[Flow], *, others: Collection[Flow]) -> str:
        """Deliver in order the frames that waited."""
        del name, others
        self._cluster.world.network.unblock(self._numbers(freed))
        return "frames are passed on again"

    def _numbers(self, flows: Collection[Flow]) -> list[tuple[int, int]]:
        number = self._cluster.broker_id
        return [(number(a), number(b)) for a, b in sorted(flows) if CLIENTS not in (a, b)]
