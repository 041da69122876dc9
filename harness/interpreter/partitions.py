"""The performance of partitions and bounds on bandwidth, and their books."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain

from clusters.abilities import DisturbsPackets
from clusters.port import CLIENTS, Cluster, NodeName
from clusters.targets import NotNowError
from harness.interpreter.books import FaultBook, Played
from harness.interpreter.cutting import Cutter
from history.failure import HarnessError
from nemesis.targets import NamedNodes, Scene, resolve
from nemesis.topology import Flows, cut_off, flows_of
from nemesis.verbs.bandwidth import Bandwidth
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.partition import Means, Partition
from nemesis.verbs.registry import kind_of
from nemesis.wire.rules import Flow

__all__ = ["Partitions"]


@dataclass(slots=True, kw_only=True)
class _OpenPartition:
    index: int
    flows: frozenset[Flow]
    by: Means


@dataclass(slots=True, kw_only=True)
class _OpenBound:
    index: int
    nodes: tuple[NodeName, ...]


class Partitions:
    """The cuts and the limits that are open now."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        cutters: Mapping[Means, Cutter],
        journal: FaultBook,
        played: Played,
    ) -> None:
        self._cluster = cluster
        self._cutters = cutters
        self._journal = journal
        self._played = played
        self._open: dict[str, _OpenPartition] = {}
        self._bounds: dict[str, _OpenBound] = {}

    @property
    def open_labels(self) -> tuple[str, ...]:
        """The labels of the cuts and limits that are open now."""
        cuts = (f"partition {name}" for name in self._open)
        return (*cuts, *(f"bandwidth {name}" for name in self._bounds))

    def cut(self, step: Partition, *, scene: Scene, draw: random.Random, now_s: float) -> None:
        """Cut the flows, and see that they are cut."""
        by, cutter = self._cutter(step)
        self._refuse_taken(step.name)
        flows = flows_of(step.cut, scene, draw)
        # Always stated: a replay may have a proxy where this run has none.
        stated = by if by is Means.PACKETS else step.by
        self._played.note(step, cut=Flows(flows=flows), by=stated, at_s=now_s)
        index = self._journal.begin("partition", _lost(flows, scene), kind=kind_of(step))
        self._open[step.name] = _OpenPartition(index=index, flows=flows, by=by)
        self._journal.effect(index, cutter.cut(step.name, flows))

    def limit(self, step: Bandwidth, *, scene: Scene, draw: random.Random, now_s: float) -> None:
        """Bound what the nodes send, and measure it."""
        self._refuse_taken(step.name)
        nodes = resolve(step.target, scene, draw)
        self._played.note(step, target=NamedNodes(nodes=nodes), at_s=now_s)
        taken = {node for bound in self._bounds.values() for node in bound.nodes}
        if both := sorted(taken.intersection(nodes)):
            raise HarnessError(f"bandwidth {step.name}: {', '.join(both)} has a bound already")
        cluster = self._cluster
        assert isinstance(cluster, DisturbsPackets), "refused before the start"
        targets = [str(node) for node in nodes]
        index = self._journal.begin("bandwidth", targets, kind=kind_of(step))
        self._bounds[step.name] = _OpenBound(index=index, nodes=nodes)
        rates = [
            f"{node} sends {cluster.limit_bandwidth(node, bits_per_s=step.bits_per_s) / 1e6:.3g}"
            for node in nodes
        ]
        self._journal.effect(index, f"{' Mbit/s, '.join(rates)} Mbit/s, measured")

    def heal(self, step: HealPartition, *, now_s: float) -> None:
        """End the partition or the bound of this name, and see that it is over."""
        if step.name not in self._bounds and step.name not in self._open:
            raise NotNowError(f"there is no partition {step.name} to heal")
        self._played.note(step, at_s=now_s)
        if step.name in self._bounds:
            self._free(step.name)
        else:
            self._mend(step.name)

    def heal_all(self, *, now_s: float) -> None:
        """End every one."""
        for name in [*self._open, *self._bounds]:
            self.heal(HealPartition(name=name), now_s=now_s)

    def _free(self, name: str) -> None:
        cluster = self._cluster
        assert isinstance(cluster, DisturbsPackets), "it was bounded"
        bound = self._bounds.pop(name)
        for node in bound.nodes:
            cluster.free_bandwidth(node)
        self._journal.end(bound.index, "the bound is gone from their interfaces")

    def _mend(self, name: str) -> None:
        healed = self._open.pop(name)
        alike = [one.flows for one in self._open.values() if one.by is healed.by]
        evidence = self._cutters[healed.by].mend(
            name,
            healed.flows.difference(*alike),
            others=set(chain.from_iterable(one.flows for one in self._open.values())),
        )
        self._journal.end(healed.index, evidence)

    def _cutter(self, step: Partition) -> tuple[Means, Cutter]:
        means = (Means.PROXY, Means.PACKETS) if step.by is None else (step.by,)
        for one in means:
            if one in self._cutters:
                return one, self._cutters[one]
        raise HarnessError("this run has no wire: its nodes reach each other directly")

    def _refuse_taken(self, name: str) -> None:
        if name in self._open or name in self._bounds:
            raise NotNowError(f"a partition named {name} is there already")


def _lost(flows: frozenset[Flow], scene: Scene) -> Iterator[str]:
    """Yield the nodes that a cut takes from the others, else its ends; found once it is asked."""
    lost = cut_off(flows, scene.nodes, scene.roles) or {node for flow in flows for node in flow}
    yield from sorted(lost - {CLIENTS})
