"""Who cuts flows between nodes, and sees that they are cut: the proxy, or rules about packets."""

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from clusters.abilities import DisturbsPackets, Links
from clusters.port import CLIENTS, Cluster, NodeName, NodeState
from nemesis.wire.port import BreaksNetwork
from nemesis.wire.rules import Flow, Link

__all__ = ["Cutter", "PacketCutter", "ProxyCutter", "awake", "those"]

Probed = TypeVar("Probed")

_PROBES_AT_ONCE: Final = 16


class Cutter(Protocol):
    """Cuts flows. A link is a pair too: who dials, and who listens."""

    def cut(self, name: str, flows: Collection[Flow]) -> None:
        """Let nothing pass in these flows."""

    def mend(self, name: str, freed: Collection[Flow]) -> str:
        """End the cut of that name; `freed` are its flows that no other cut of this kind has.

        Returns what became of what was sent meanwhile, if that can be said, or nothing.
        """

    def links_over(self, flows: Collection[Flow]) -> list[Flow]:
        """The links that need one of the flows, in either direction, and can be probed now."""

    def answers(self, link: Flow, *, timeout_s: float) -> bool:
        """Whether a request over this link gets its answer in time."""

    def answers_directly(self, node: NodeName, *, timeout_s: float) -> bool:
        """Whether the node answers where no link is in between."""


class ProxyCutter:
    """The proxy passes nothing on: `Cutter`."""

    def __init__(self, wire: BreaksNetwork, links: Collection[Link]) -> None:
        self._wire = wire
        self._links = [(link.source, link.target) for link in links]

    def cut(self, name: str, flows: Collection[Flow]) -> None:
        """Block them, whoever dialled."""
        del name
        self._wire.block(flows)

    def mend(self, name: str, freed: Collection[Flow]) -> str:
        """Deliver in order what waited."""
        del name
        self._wire.unblock(freed)
        return ""

    def links_over(self, flows: Collection[Flow]) -> list[Flow]:
        """The links on which the proxy sits."""
        return _over(self._links, flows)

    def answers(self, link: Flow, *, timeout_s: float) -> bool:
        """Asked through the proxy."""
        return self._wire.probe(*link, timeout_s=timeout_s)

    def answers_directly(self, node: NodeName, *, timeout_s: float) -> bool:
        """Asked where the proxy itself finds the node."""
        return self._wire.probe_directly(node, timeout_s=timeout_s)


class PacketCutter:
    """Rules in the nodes' own networks: `Cutter`. `where`: the very same cluster."""

    def __init__(self, cluster: DisturbsPackets, *, where: Cluster) -> None:
        assert isinstance(where, Links)
        self._cluster = cluster
        self._where = where
        self._links = [(end.source, end.target) for end in where.links()]

    def cut(self, name: str, flows: Collection[Flow]) -> None:
        """Drop each packet of theirs."""
        self._cluster.drop_packets(name, flows)

    def mend(self, name: str, freed: Collection[Flow]) -> str:
        """Drop no more."""
        del freed
        return f"{self._cluster.pass_packets(name):,} packets were dropped"

    def links_over(self, flows: Collection[Flow]) -> list[Flow]:
        """Those whose source runs: it is from there that they are probed."""
        return [
            (source, target)
            for source, target in _over(self._links, flows)
            if source == CLIENTS or self._where.state(source) is not NodeState.DOWN
        ]

    def answers(self, link: Flow, *, timeout_s: float) -> bool:
        """Asked from inside of the source's network."""
        return self._cluster.reaches(*link, timeout_s=timeout_s)

    def answers_directly(self, node: NodeName, *, timeout_s: float) -> bool:
        """Asked from this machine, at the node's own address."""
        return self._cluster.answers(node, timeout_s=timeout_s)


def those(items: Collection[Probed], answers: Callable[[Probed], bool]) -> list[Probed]:
    """Those that answer, asked all at once."""
    if not items:
        return []
    with ThreadPoolExecutor(max_workers=_PROBES_AT_ONCE) as pool:
        answered = pool.map(answers, items)
        return [item for item, has in zip(items, answered, strict=True) if has]


def awake(
    nodes: Collection[NodeName], *, cluster: Cluster, cutter: Cutter, timeout_s: float
) -> frozenset[NodeName]:
    """Those of the nodes that run, and answer where no link is in between."""
    running = [node for node in nodes if cluster.state(node) is NodeState.RUNNING]
    return frozenset(
        those(running, lambda node: cutter.answers_directly(node, timeout_s=timeout_s))
    )


def _over(links: Collection[Flow], flows: Collection[Flow]) -> list[Flow]:
    return [link for link in links if link in flows or link[::-1] in flows]
