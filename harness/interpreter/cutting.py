"""The means of cutting flows between nodes and of seeing the cut: the proxy, or packet rules.

A cut is seen by probes: a request sent over each link that it cuts gets no answer. It is over once
they are answered again, where the target answers one that is sent to it directly: a node that has
just been started does not yet.
"""

import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol, TypeVar

from fencepost.clusters.abilities import DisturbsPackets, LinkEnd, Links
from fencepost.clusters.port import CLIENTS, Cluster, NodeName, NodeState
from fencepost.history.failure import HarnessError
from fencepost.nemesis.verbs.partition import Means
from fencepost.nemesis.wire.port import BreaksNetwork
from fencepost.nemesis.wire.rules import Flow, Link

Probed = TypeVar("Probed")

_PROBE_S: Final = 1.0
"""A probe through an open link is answered within ms; on a busy machine, within this."""
_HEAL_PROBE_S: Final = 5.0
_AGAIN_S: Final = 0.1
_PROBES_AT_ONCE: Final = 16
_NAMED_MAX: Final = 6


class Cutter(Protocol):
    """A means of cutting flows.

    Each method returns its evidence, or raises HarnessError without any.
    """

    def cut(self, name: str, flows: Collection[Flow]) -> str:
        """Let nothing pass in these flows."""

    def mend(self, name: str, freed: Collection[Flow], *, others: Collection[Flow]) -> str:
        """End the cut of that name.

        `freed` are its flows that no other cut of this kind has; `others`: all that are cut still,
        by whatever.
        """


def cutters_of(
    cluster: Cluster, *, wire: BreaksNetwork | None, links: Collection[Link]
) -> dict[Means, Cutter]:
    """Return the cutters for the flows of this cluster. `links`: those on which the proxy sits."""
    found: dict[Means, Cutter] = {}
    if wire is not None:
        found[Means.PROXY] = _proxy(cluster, wire, links)
    if isinstance(cluster, DisturbsPackets) and cluster.why_no_packets() is None:
        found[Means.PACKETS] = _packets(cluster, where=cluster)
    return found


def _proxy(cluster: Cluster, wire: BreaksNetwork, links: Collection[Link]) -> "_Probed":
    """Return the proxy as a cutter.

    It passes nothing on, whoever dialled, and delivers in order what waited.
    """

    def free(_name: str, freed: Collection[Flow]) -> str:
        wire.unblock(freed)
        return ""

    return _Probed(
        cluster=cluster,
        links=_pairs(links),
        block=lambda _name, flows: wire.block(flows),
        free=free,
        reaches=wire.probe,
        answers=wire.probe_directly,
    )


def _packets(cluster: DisturbsPackets, *, where: Cluster) -> "_Probed":
    """Return a cutter that drops each packet by rules in the nodes' own networks.

    `where`: the very same cluster.
    """
    assert isinstance(where, Links)
    return _Probed(
        cluster=where,
        links=_pairs(where.links()),
        block=cluster.drop_packets,
        free=lambda name, _freed: f"; {cluster.pass_packets(name):,} packets were dropped",
        reaches=cluster.reaches,
        answers=cluster.answers,
        from_source=True,
        how=" (packets are dropped)",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Probed:
    """A `Cutter` whose links are probed. A link is a pair of who dials and who listens."""

    cluster: Cluster
    links: Sequence[Flow]
    block: Callable[[str, Collection[Flow]], None]
    free: Callable[[str, Collection[Flow]], str]
    """Returns the fate of the frames that were sent meanwhile, if it is known."""
    reaches: Callable[..., bool]
    """(source, target, timeout_s): true if a request over this link gets its answer in time."""
    answers: Callable[..., bool]
    """(node, timeout_s): true if it answers where no link is in between."""
    from_source: bool = False
    """True if probes are sent from inside the source's network: the source has to run."""
    how: str = ""

    def cut(self, name: str, flows: Collection[Flow]) -> str:
        """Block the flows, and see that no link over them answers."""
        self.block(name, flows)
        links = self._links_over(flows)
        if not links:
            raise HarnessError(f"partition {name}: no link between these nodes can be cut")
        answered = _those(links, lambda link: self.reaches(*link, timeout_s=_PROBE_S))
        if answered:
            raise HarnessError(f"partition {name}: {_named(answered)} still answers")
        return f"no answer over {len(links)} links: {_named(links)}{self.how}"

    def mend(self, name: str, freed: Collection[Flow], *, others: Collection[Flow]) -> str:
        """Free the flows, and see the links answer again whose targets answer directly."""
        became = self.free(name, freed)
        blocked = set(self._links_over(others))
        over = self._links_over(set(freed) - set(others))
        open_again = [link for link in over if link not in blocked]
        targets = {target for _, target in open_again}
        running = [node for node in targets if self.cluster.state(node) is NodeState.RUNNING]
        up = _those(running, lambda node: self.answers(node, timeout_s=_HEAL_PROBE_S))
        links = [link for link in open_again if link[1] in up]
        if silent := self._silent(links):
            raise HarnessError(f"partition {name} is healed, but {_named(silent)} is silent")
        return f"{len(links)} links answer again{became}"

    def _silent(self, links: Collection[Flow]) -> set[Flow]:
        """Return the links that are silent to the end of the time, asked again and again.

        A node that takes notice of what it missed may close the connection of a probe.
        """
        silent, ends_s = set(links), time.monotonic() + _HEAL_PROBE_S
        while silent and (left_s := ends_s - time.monotonic()) > 0:
            probe = partial(self._reached, timeout_s=left_s)
            silent -= set(_those(list(silent), probe))
            if silent:
                time.sleep(_AGAIN_S)
        return silent

    def _reached(self, link: Flow, *, timeout_s: float) -> bool:
        return self.reaches(*link, timeout_s=timeout_s)

    def _links_over(self, flows: Collection[Flow]) -> list[Flow]:
        """Return the links that need one of the flows, in either direction, and can be probed."""
        return [
            (source, target)
            for source, target in self.links
            if ((source, target) in flows or (target, source) in flows)
            and (not self.from_source or self._runs(source))
        ]

    def _runs(self, source: NodeName) -> bool:
        return source == CLIENTS or self.cluster.state(source) is not NodeState.DOWN


def _pairs(links: Collection[Link] | Collection[LinkEnd]) -> list[Flow]:
    """Return the links as (source, target), each pair once, whatever its ports."""
    return list(dict.fromkeys((link.source, link.target) for link in links))


def _those(items: Collection[Probed], answers: Callable[[Probed], bool]) -> list[Probed]:
    """Return those that answer, asked all at once."""
    if not items:
        return []
    with ThreadPoolExecutor(max_workers=_PROBES_AT_ONCE) as pool:
        answered = pool.map(answers, items)
        return [item for item, has in zip(items, answered, strict=True) if has]


def _named(links: Collection[Flow]) -> str:
    words = sorted(f"{source} → {target}" for source, target in links)
    more = f" and {len(words) - _NAMED_MAX} more" if len(words) > _NAMED_MAX else ""
    return ", ".join(words[:_NAMED_MAX]) + more
