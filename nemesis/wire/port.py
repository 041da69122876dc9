"""The wire as the harness uses it, whether a proxy between processes or a simulated one."""

from collections.abc import Collection, Mapping
from typing import Protocol

from fencepost.clusters.port import NodeName
from fencepost.nemesis.wire.rules import Flow, Rule
from fencepost.nemesis.wire.status import Delivery, WireStatus


class BreaksNetwork(Protocol):
    """Rules and partitions on the links of one cluster."""

    def add(self, rule: Rule) -> None:
        """Lay a rule, behind those that are laid. Raises UsageError if it can concern nothing."""

    def release(self, name: str) -> Delivery:
        """Remove the rule, and deliver what it holds, in the order in which it came."""

    def discard(self, name: str) -> int:
        """Remove the rule, drop the frames it holds, and cut their connections; return how many."""

    def block(self, flows: Collection[Flow]) -> None:
        """Pass nothing on from the first to the second node of each flow, whichever dialled."""

    def unblock(self, flows: Collection[Flow] | None = None) -> None:
        """Deliver in order what waited in these flows; None: in all."""

    def name_topics(self, names: Mapping[str, str]) -> None:
        """Say what topics are called: names by id, for frames that state ids alone."""

    def status(self) -> WireStatus:
        """Return the status of the wire."""

    def probe(self, source: NodeName, target: NodeName, *, timeout_s: float) -> bool:
        """Return whether a request through this link gets its answer in time."""

    def probe_directly(self, target: NodeName, *, timeout_s: float) -> bool:
        """Return whether a request to the target gets its answer where no link is in between."""
