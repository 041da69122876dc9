"""The times in which nothing kept a node from hearing of what was so, and from acting on it.

What a paused, dead, deaf or cut-off node cannot know is not held against it. A bound of time on
what a node knows or does counts while nothing was done to it, or to those that it hears it from:
its process, its disk, its clock or its links. A rule that concerns messages of some API (`hold`,
`cut` and the like) keeps it from those alone, and is no standstill; unless it is on a link of those
that it learns from, whose messages these may be.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

import pyarrow as pa

from fencepost.checkers.spans import FOREVER_NS, Span, outside
from fencepost.history.schema import FAULTS

_OF_MESSAGES: Final = frozenset(
    {"hold", "cut", "answer", "drop", "duplicate", "reorder", "lower_version"}
)
"""Rules about messages that they name."""
_DEADLY: Final = frozenset({"kill", "stop", "cut_power", "wipe", "rollback"})
"""Faults that end a process: the next one has heard of nothing yet."""
_OF_LINKS: Final = _OF_MESSAGES | {"partition", "delay", "bandwidth"}


@dataclass(frozen=True, slots=True)
class _Fault:
    fault: str
    targets: frozenset[str]
    span: Span


@dataclass(frozen=True)
class Standstills:
    """The faults of a run, for bounds of time."""

    faults: Sequence[_Fault]
    _between: dict[tuple[str, frozenset[str]], Sequence[Span]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )
    """The times outside those that stop a node, kept: a night asks for them at each request."""

    @staticmethod
    def of(faults: pa.Table | None) -> "Standstills":
        """Return them out of FAULTS; None: none is known."""
        rows = (FAULTS.empty_table() if faults is None else faults).select(
            ["fault", "targets", "begin_ns", "end_ns"]
        )
        return Standstills(
            [
                _Fault(
                    row["fault"],
                    frozenset(row["targets"]),
                    Span(
                        from_ns=row["begin_ns"],
                        until_ns=FOREVER_NS if row["end_ns"] is None else row["end_ns"],
                    ),
                )
                for row in rows.to_pylist()
            ]
        )

    @cached_property
    def of_processes(self) -> "Standstills":
        """Those that are not of links: what keeps a node from acting upon what it has heard."""
        return Standstills([one for one in self.faults if one.fault not in _OF_LINKS])

    @cached_property
    def outlived(self) -> "Standstills":
        """Those that a process lives through, and afterwards knows what it knew."""
        return Standstills([one for one in self.faults if one.fault not in _DEADLY])

    def acted_ns(
        self, from_ns: int, until_ns: int, *, node: str, hears_from: Collection[str]
    ) -> int:
        """Return the longest time between these in which the node could hear and act."""
        if from_ns >= until_ns:
            return 0
        free = self._free(node, frozenset(hears_from))
        first = bisect_right(free, from_ns, key=lambda span: span.until_ns)
        end = bisect_left(free, until_ns, key=lambda span: span.from_ns)
        within = (
            min(span.until_ns, until_ns) - max(span.from_ns, from_ns) for span in free[first:end]
        )
        return max(within, default=0)

    def acted_by_ns(self, from_ns: int, for_ns: int, *, node: str) -> int:
        """Return when it could first have acted for this long on end; FOREVER_NS: never."""
        free = self._free(node, frozenset())
        for span in free[bisect_right(free, from_ns, key=lambda span: span.until_ns) :]:
            begin_ns = max(span.from_ns, from_ns)
            if span.until_ns - begin_ns >= for_ns:
                return begin_ns + for_ns
        return FOREVER_NS

    def _free(self, node: str, hears_from: frozenset[str]) -> Sequence[Span]:
        if (node, hears_from) not in self._between:
            still = (one.span for one in self.faults if _stops(one, node, hears_from))
            self._between[node, hears_from] = list(outside(still))
        return self._between[node, hears_from]


def _stops(one: _Fault, node: str, hears_from: Collection[str]) -> bool:
    if node in one.targets and one.fault not in _OF_MESSAGES:
        return True
    # A fault that names others as well is done to a link of theirs, and not to one of this node's.
    elsewhere = one.targets.difference(hears_from, {node})
    return not one.targets.isdisjoint(hears_from) and (node in one.targets or not elsewhere)
