"""Who cuts flows between nodes, and sees that they are cut: the proxy, or rules about packets.

A cut is seen by probes: a request sent over each link that it cuts gets no answer. It is over once
they are answered again, where the target answers one that is sent to it directly: a node that has
just been started does not yet.
"""

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

from clusters.abilities import DisturbsPackets, Links
from clusters.port import CLIENTS, Cluster, NodeName, NodeState
from history.failure import HarnessError
from nemesis.verbs.partition import Means
from nemesis.wire.port import BreaksNetwork
from nemesis.wire.rules import Flow, Link

__all__ = ["Cutter", "cutters_of"]

Probed = TypeVar("Probed")

_PROBE_S: Final = 1.0
"""A probe through an open link is answered within ms; on a busy machine, within this."""
_HEAL_PROBE_S: Final = 5.0
_PROBES_AT_ONCE: Final = 16
_NAMED_MAX: Final = 6


class Cutter(Protocol):
    """Cuts flows. Each returns its evidence, or raises HarnessError if there is none."""

    def cut(self, name: str, flows: Collection[Flow]) -> str:
        """Let nothing pass in these flows."""

    def mend(self, name: str, freed: Collection[Flow], *, others: Collection[Flow]) -> str:
        """End the cut of that name.

        `freed` are its flows that no other cut of this kind has; `others`: all that are cut still,
        by whatever.
        """


class _Probes(Protocol):
    """Requests over links. A link is a pair of who dials and who listens."""

    def links_over(self, flows: Collection[Flow]) -> list[Flow]:
        """The links that need one of the flows, in either direction, and can be probed now."""

    def answers(self, link: Flow, *, timeout_s: float) -> bool:
        """Whether a request over this link gets its answer in time."""

    def answers_directly(self, node: NodeName, *, timeout_s: float) -> bool:
        """Whether the node answers where no link is in between."""


def cutters_of(
    cluster: Cluster, *, wire: BreaksNetwork | None, links: Collection[Link]
) -> dict[Means, Cutter]:
    """What can cut the flows of this cluster. `links`: those on which the proxy sits."""
    found: dict[Means, Cutter] = {}
    if wire is not None:
        found[Means.PROXY] = _ProxyCutter(cluster, wire, links)
    if isinstance(cluster, DisturbsPackets) and cluster.why_no_packets() is None:
        found[Means.PACKETS] = _PacketCutter(cluster, where=cluster)
    return found


class _ProxyCutter:
    """The proxy passes nothing on: `Cutter`."""

    def __init__(self, cluster: Cluster, wire: BreaksNetwork, links: Collection[Link]) -> None:
        self._cluster = cluster
        self._wire = wire
        self._links = [(link.source, link.target) for link in links]

    def cut(self, name: str, flows: Collection[Flow]) -> str:
        """Block them, whoever dialled."""
        self._wire.block(flows)
        return _seen_cut(self, name, flows)

    def mend(self, name: str, freed: Collection[Flow], *, others: Collection[Flow]) -> str:
        """Deliver in order what waited."""
        self._wire.unblock(freed)
        return _seen_open(self, name, freed, others=others, cluster=self._cluster)

    def links_over(self, flows: Collection[Flow]) -> list[Flow]:
        """The links on which the proxy sits."""
        return _over(self._links, flows)

    def answers(self, link: Flow, *, timeout_s: float) -> bool:
        """Asked through the proxy."""
        return self._wire.probe(*link, timeout_s=timeout_s)

    def answers_directly(self, node: NodeName, *, timeout_s: float) -> bool:
        """Asked where the proxy itself finds the node."""
        return self._wire.probe_directly(node, timeout_s=timeout_s)


class _PacketCutter:
    """Rules in the nodes' own networks: `Cutter`. `where`: the very same cluster."""

    def __init__(self, cluster: DisturbsPackets, *, where: Cluster) -> None:
        assert isinstance(where, Links)
        self._cluster = cluster
        self._where = where
        self._links = [(end.source, end.target) for end in where.links()]

    def cut(self, name: str, flows: Collection[Flow]) -> str:
        """Drop each packet of theirs."""
        self._cluster.drop_packets(name, flows)
        return f"{_seen_cut(self, name, flows)} (packets are dropped)"

    def mend(self, name: str, freed: Collection[Flow], *, others: Collection[Flow]) -> str:
        """Drop no more."""
        dropped = self._cluster.pass_packets(name)
        seen = _seen_open(self, name, freed, others=others, cluster=self._where)
        return f"{seen}; {dropped:,} packets were dropped"

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


def _seen_cut(probes: _Probes, name: str, flows: Collection[Flow]) -> str:
    links = probes.links_over(flows)
    if not links:
        raise HarnessError(f"partition {name}: no link between these nodes can be cut")
    answered = _those(links, lambda link: probes.answers(link, timeout_s=_PROBE_S))
    if answered:
        raise HarnessError(f"partition {name}: {_named(answered)} still answers")
    return f"no answer over {len(links)} links: {_named(links)}"


def _seen_open(
    probes: _Probes,
    name: str,
    freed: Collection[Flow],
    *,
    others: Collection[Flow],
    cluster: Cluster,
) -> str:
    """See the links answer again whose targets run and answer where no link is in between."""
    blocked = set(probes.links_over(others))
    open_again = [
        link for link in probes.links_over(set(freed) - set(others)) if link not in blocked
    ]
    targets = {target for _, target in open_again}
    running = [node for node in targets if cluster.state(node) is NodeState.RUNNING]
    up = _those(running, lambda node: probes.answers_directly(node, timeout_s=_HEAL_PROBE_S))
    links = [link for link in open_again if link[1] in up]
    answered = _those(links, lambda link: probes.answers(link, timeout_s=_HEAL_PROBE_S))
    if silent := set(links) - set(answered):
        raise HarnessError(f"partition {name} is healed, but {_named(silent)} is silent")
    return f"{len(links)} links answer again"


def _those(items: Collection[Probed], answers: Callable[[Probed], bool]) -> list[Probed]:
    """Those that answer, asked all at once."""
    if not items:
        return []
    with ThreadPoolExecutor(max_workers=_PROBES_AT_ONCE) as pool:
        answered = pool.map(answers, items)
        return [item for item, has in zip(items, answered, strict=True) if has]


def _over(links: Collection[Flow], flows: Collection[Flow]) -> list[Flow]:
    return [link for link in links if link in flows or link[::-1] in flows]


def _named(links: Collection[Flow]) -> str:
    words = sorted(f"{source} → {target}" for source, target in links)
    more = f" and {len(words) - _NAMED_MAX} more" if len(words) > _NAMED_MAX else ""
    return ", ".join(words[:_NAMED_MAX]) + more
