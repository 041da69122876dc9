"""Process and real-time edges, from the processes and times of the calls.

What a ends before b is called precedes it in real time. Told pair by pair that is quadratic; told
through *barriers* it is linear. Let everything be sorted by its call. A barrier stands before some
of it, leads to all from there up to the next barrier, and to that one. What ended leads to the
barrier before the first thing that was called later. So there is a way from a to b through barriers
exactly if a precedes b.

An info transaction may take effect at any time after its call: nothing follows it. Of a process
only transactions that did not overlap are ordered; consecutive ok ones suffice, for the order of a
process is transitive.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.cycles.inference import Nodes
from fencepost.checkers.rows import OK, OPEN_NS

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Events:
    """Parallel arrays."""

    called_ns: Ints
    """Ascending."""
    ended_ns: Ints
    """`checkers.rows.OPEN_NS` if nothing is known to have come after its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Barriers:
    """Edges by place in the events; places from there on are barriers."""

    source: Ints
    target: Ints
    count: int
    """The number of barriers."""
    entries: int
    """The number of leading edges that lead from events into barriers."""


def events_of(nodes: Nodes) -> Events:
    """Return when these transactions were called, and when the ok ones among them had ended."""
    ended = np.where(nodes["outcome"] == OK, nodes["return_ns"], OPEN_NS)
    return Events(called_ns=nodes["call_ns"], ended_ns=ended)


def process_edges(nodes: Nodes) -> tuple[Ints, Ints]:
    """Return sources and targets, by place in `nodes`, which are in the order of their calls."""
    by_process = np.argsort(nodes["process"], kind="stable")
    ends = np.flatnonzero((nodes["outcome"] == OK)[by_process])
    # The last ok one at or before each place, and so before the next place.
    latest = np.full(len(nodes), -1)
    latest[ends] = ends
    before = np.concatenate([[-1], np.maximum.accumulate(latest)[:-1]])[: len(nodes)]
    some = np.flatnonzero(before >= 0)
    source, target = by_process[before[some]], by_process[some]
    same = nodes["process"][source] == nodes["process"][target]
    same &= nodes["return_ns"][source] <= nodes["call_ns"][target]
    return source[same], target[same]


def realtime(events: Events) -> Barriers:
    """Return the edges of real time among these events."""
    count = len(events.called_ns)
    ended = np.flatnonzero(events.ended_ns < OPEN_NS)
    following = np.searchsorted(events.called_ns, events.ended_ns[ended], side="right")
    ended, following = ended[following < count], following[following < count]
    stands = np.unique(following)
    barriers = count + np.arange(len(stands))
    into = barriers[np.searchsorted(stands, following)]
    reached = np.arange(int(stands[0]), count) if len(stands) else np.empty(0, np.int64)
    out_of = barriers[np.searchsorted(stands, reached, side="right") - 1]
    return Barriers(
        source=np.concatenate([ended, out_of, barriers[:-1]]),
        target=np.concatenate([into, reached, barriers[1:]]),
        count=len(stands),
        entries=len(ended),
    )
