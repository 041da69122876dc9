"""Spans of time, and what several lists of them have in common.

A claim that something was so *all through* a span rounds it inwards: from the latest moment at
which it can have begun, until the earliest at which it can have ended.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

FOREVER_NS: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A span from one moment until another one, in ns of the run."""

    from_ns: int
    until_ns: int

    @property
    def length_ns(self) -> int:
        """The length of the span in ns."""
        return self.until_ns - self.from_ns


def common(*lists: Sequence[Span]) -> Sequence[Span]:
    """Return the spans covered by every list, by time. Each list is by time and disjoint."""
    first, *others = lists
    for other in others:
        first = list(_common(first, other))
    return first


def outside(spans: Iterable[Span], *, until_ns: int = FOREVER_NS) -> Iterator[Span]:
    """Yield the spans between these, by time, from 0 on."""
    from_ns = 0
    end = Span(from_ns=until_ns, until_ns=FOREVER_NS)
    for span in sorted([*spans, end], key=lambda one: one.from_ns):
        if from_ns < min(span.from_ns, until_ns):
            yield Span(from_ns=from_ns, until_ns=min(span.from_ns, until_ns))
        from_ns = max(from_ns, span.until_ns)


def _until_ns(span: Span) -> int:
    return span.until_ns


def _common(one: Sequence[Span], other: Sequence[Span]) -> Iterator[Span]:
    if not one or not other:
        return
    # One absence is held against a night of faults: what lies before it is not looked at.
    mine = bisect_right(one, other[0].from_ns, key=_until_ns)
    theirs = bisect_right(other, one[0].from_ns, key=_until_ns)
    while mine < len(one) and theirs < len(other):
        from_ns = max(one[mine].from_ns, other[theirs].from_ns)
        until_ns = min(one[mine].until_ns, other[theirs].until_ns)
        if from_ns < until_ns:
            yield Span(from_ns=from_ns, until_ns=until_ns)
        if one[mine].until_ns <= other[theirs].until_ns:
            mine += 1
        else:
            theirs += 1
