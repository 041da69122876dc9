"""Performs partitions and bounds on bandwidth, and keeps their books.

A partition's effect is seen by probes: a request sent over each link that it cuts gets no answer.
It is over once they are answered again, where the target answers one that is sent to it directly: a
node that has just been started does not yet. A bound's effect is the rate that was measured.
"""

import random
from collections.abc import Collection
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final

from clusters.abilities import DisturbsPackets
from clusters.port import CLIENTS, Cluster, NodeName
from harness.interpreter.cutting import Cutter, PacketCutter, ProxyCutter, awake, those
from harness.interpreter.played import PerformedPlay
from history.failure import HarnessError
from history.journal import FaultJournal
from nemesis.targets import NamedNodes, Scene, resolve
from nemesis.topology import Flows, cut_off, flows_of
from nemesis.verbs.bandwidth import Bandwidth
from nemesis.verbs.heal import HealPartition
from nemesis.verbs.partition import Means, Partition
from nemesis.verbs.registry import kind_of
from nemesis.wire.port import BreaksNetwork
from nemesis.wire.rules import Flow, Link

__all__ = ["Partitions"]

_PROBE_S: Final = 1.0
"""A probe through an open link is answered within ms; on a busy machine, within this."""
_HEAL_PROBE_S: Final = 5.0
_NAMED_MAX: Final = 6


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
    """What is cut or bounded now. `wire` None: there is no proxy on the links."""

    def __init__(
        self,
        cluster: Cluster,
        *,
        wire: BreaksNetwork | None,
        links: Collection[Link],
        journal: FaultJournal,
        played: PerformedPlay,
    ) -> None:
        self._cluster = cluster
        self._journal = journal
        self._played = played
        self._cutters: dict[Means, Cutter] = {}
        if wire is not None:
            self._cutters[Means.PROXY] = ProxyCutter(wire, links)
        if isinstance(cluster, DisturbsPackets) and cluster.why_no_packets() is None:
            self._cutters[Means.PACKETS] = PacketCutter(cluster, where=cluster)
        self._open: dict[str, _OpenPartition] = {}
        self._bounds: dict[str, _OpenBound] = {}

    @property
    def open_labels(self) -> tuple[str, ...]:
        """What is cut or bounded now."""
        cuts = (f"partition {name}" for name in self._open)
        return (*cuts, *(f"bandwidth {name}" for name in self._bounds))

    def cut(self, step: Partition, *, scene: Scene, draw: random.Random, now_s: float) -> None:
        """Cut the flows, and see by probes that they are cut."""
        by, cutter = self._cutter(step)
        self._refuse_taken(step.name)
        flows = flows_of(step.cut, scene, draw)
        # Said in any case: a replay may have a proxy where this run has none.
        stated = by if by is Means.PACKETS else step.by
        self._played.note(replace(step, cut=Flows(flows=flows), by=stated, at_s=now_s))
        lost = cut_off(flows, scene.nodes) or {node for flow in flows for node in flow}
        index = self._journal.begin("partition", sorted(lost - {CLIENTS}), kind=kind_of(step))
        self._open[step.name] = _OpenPartition(index=index, flows=flows, by=by)
        cutter.cut(step.name, flows)
        links = cutter.links_over(flows)
        if not links:
            raise HarnessError(f"partition {step.name}: no link between these nodes can be cut")
        answered = those(links, lambda link: cutter.answers(link, timeout_s=_PROBE_S))
        if answered:
            raise HarnessError(f"partition {step.name}: {_named(answered)} still answers")
        how = " (packets are dropped)" if by is Means.PACKETS else ""
        self._journal.effect(index, f"no answer over {len(links)} links: {_named(links)}{how}")

    def limit(self, step: Bandwidth, *, scene: Scene, draw: random.Random, now_s: float) -> None:
        """Bound what the nodes send, and measure it."""
        self._refuse_taken(step.name)
        nodes = resolve(step.target, scene, draw)
        self._played.note(replace(step, target=NamedNodes(nodes=nodes), at_s=now_s))
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
        self._played.note(replace(step, at_s=now_s))
        if step.name in self._bounds:
            self._free(step.name)
        elif step.name in self._open:
            self._mend(step.name)
        else:
            raise HarnessError(f"there is no partition {step.name} to heal")

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
        """Undo the cut; where the target answers by itself, the link is seen to answer again."""
        healed = self._open.pop(name)
        cutter = self._cutters[healed.by]
        alike = [one.flows for one in self._open.values() if one.by is healed.by]
        became = cutter.mend(name, healed.flows - set(chain.from_iterable(alike)))
        others = set(chain.from_iterable(one.flows for one in self._open.values()))
        blocked = set(cutter.links_over(others))
        freed = cutter.links_over(healed.flows - others)
        open_again = [link for link in freed if link not in blocked]
        targets = {target for _, target in open_again}
        up = awake(targets, cluster=self._cluster, cutter=cutter, timeout_s=_HEAL_PROBE_S)
        links = [link for link in open_again if link[1] in up]
        answered = those(links, lambda link: cutter.answers(link, timeout_s=_HEAL_PROBE_S))
        if silent := set(links) - set(answered):
            raise HarnessError(f"partition {name} is healed, but {_named(silent)} is silent")
        words = f"{len(links)} links answer again"
        self._journal.end(healed.index, f"{words}; {became}" if became else words)

    def _cutter(self, step: Partition) -> tuple[Means, Cutter]:
        means = (Means.PROXY, Means.PACKETS) if step.by is None else (step.by,)
        for one in means:
            if one in self._cutters:
                return one, self._cutters[one]
        raise HarnessError("this run has no wire: its nodes reach each other directly")

    def _refuse_taken(self, name: str) -> None:
        if name in self._open or name in self._bounds:
            raise HarnessError(f"a partition named {name} is there already")


def _named(links: Collection[Flow]) -> str:
    words = sorted(f"{source} → {target}" for source, target in links)
    more = f" and {len(words) - _NAMED_MAX} more" if len(words) > _NAMED_MAX else ""
    return ", ".join(words[:_NAMED_MAX]) + more
