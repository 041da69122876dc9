"""The way from the lists to the cycles, and from these to sentences.

This is the whole check of a list-append history, apart from where its parts are computed. Parts of
the history are worked on alone (`inference`); then

1. the spans of all parts, merged, are the *segments*: transactions are numbered by their calls, and
   a cycle has to come back, so each cut between its first and its last transaction is spanned by an
   edge to an earlier one. Hence every cycle lies in one segment. (Process and real time only lead
   to transactions that were called later.)
2. the edges and transactions inside segments, of all parts, are the graph (`graph_of`);
3. the edges of the cycles that were found are looked up in the parts again, for their reasons.

An info transaction that was read of was committed; others are left out, as if they had not taken
place, which explains at least as much. Under a promise of read-uncommitted, to have been read
proves nothing, and all of them are left out.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.cycles.cycles import Cycles, cycles_of
from fencepost.checkers.cycles.edges import (
    EdgeKind,
    Edges,
    ends_of,
    joined,
    merged,
    segments_of,
    within,
)
from fencepost.checkers.cycles.graph import graph_of
from fencepost.checkers.cycles.inference import Inferred, Nodes
from fencepost.checkers.cycles.levels import level_of_cycle
from fencepost.checkers.cycles.shortest import Cycle, CycleEdge
from fencepost.checkers.cycles.steps import NONE
from fencepost.checkers.cycles.transaction_anomaly import TransactionAnomaly
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import INFO, OK
from fencepost.history.models import Isolation

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """The reason why one edge holds."""

    key: str
    before: int
    """The element before, or `steps.NONE`."""
    element: int


Reasons = Mapping[CycleEdge, Reason]


def taking_part(nodes: Nodes, observed: Ints, *, promise: Isolation) -> Nodes:
    """Return the transactions that took place, as far as known, by index."""
    seen = np.isin(nodes["transaction"], observed) & (nodes["outcome"] == INFO)
    if promise is Isolation.READ_UNCOMMITTED:
        seen[:] = False
    kept = np.flatnonzero((nodes["outcome"] == OK) | seen)
    ordered: Nodes = nodes[kept[np.argsort(nodes["transaction"][kept], kind="stable")]]
    return ordered


def cycles_in(parts: Sequence[Inferred], *, promise: Isolation) -> Cycles:
    """Return the cycles of a history whose parts are all at hand."""
    segments = merged([part.spans for part in parts])
    ends = joined(within(ends_of(part.edges), segments) for part in parts)
    nodes = np.concatenate([part.nodes for part in parts])
    nodes = nodes[segments_of(nodes["transaction"], segments) >= 0]
    observed = np.concatenate([part.observed for part in parts])
    return cycles_of(graph_of(taking_part(nodes, observed, promise=promise), ends))


def reasons_in(
    edges: Edges, names: Sequence[str], links: Iterable[CycleEdge]
) -> dict[CycleEdge, Reason]:
    """Return why these links hold, as far as one part's edges tell; `names`: of its keys."""
    found: dict[CycleEdge, Reason] = {}
    for link in links:
        if link.kind > EdgeKind.RW:
            continue
        out = edges[(edges["source"] == link.source) & (edges["kind"] == link.kind)]
        direct = out[out["target"] == link.target]
        if len(direct):
            found[link] = _reason(direct[0], direct[0], names)
        elif link.kind is EdgeKind.RW and (out["target"] < 0).any():
            into = edges[(edges["target"] == link.target) & (edges["source"] < 0)]
            for edge in into[np.isin(into["key"], out["key"][out["target"] < 0])][:1]:
                entry = out[(out["key"] == edge["key"]) & (out["target"] < 0)][0]
                found[link] = _reason(entry, edge, names)
    return found


def _reason(entry: np.void, end: np.void, names: Sequence[str]) -> Reason:
    return Reason(
        key=names[int(entry["key"])], before=int(entry["before"]), element=int(end["element"])
    )


def spelled_cycle(cycle: Cycle, reasons: Reasons) -> TransactionAnomaly:
    """Return a cycle as a proof: each edge, and why it holds."""
    suffix = ("", "", "", "-process", "-realtime")[cycle.order]
    level = level_of_cycle(cycle.kind, plain=cycle.plain)
    known = [reasons[link] for link in cycle.links if link in reasons]
    steps = Proof.joined("; ", (_step(link, reasons.get(link)) for link in cycle.links))
    most = "" if cycle.shortest else "; shorter ones may exist"
    return TransactionAnomaly(
        key=known[0].key if known else "",
        level=level,
        proof=Proof.of(
            "{kind}{suffix}, which {level} forbids: {steps} (one component of "
            f"{{transactions}} transactions{most})",
            operations=tuple(link.source for link in cycle.links),
            values=tuple(reason.element for reason in known),
            kind=cycle.kind,
            suffix=suffix,
            level=level,
            steps=steps,
            transactions=cycle.transactions,
        ),
    )


def _step(link: CycleEdge, reason: Reason | None) -> Proof:
    ends = {"source": link.source, "target": link.target}
    if link.kind is EdgeKind.PROCESS:
        return Proof.of("{target} came after {source} in one process", operations=ends)
    if link.kind is EdgeKind.REALTIME:
        return Proof.of("{target} was called after {source} had returned", operations=ends)
    if reason is None:
        rule = f"{{source}} comes before {{target}} ({link.kind.name.lower()})"
        return Proof.of(rule, operations=ends)
    empty = reason.before == NONE
    rule = {
        EdgeKind.WW: "{target} appended {element} to {key} after {source} had {before}",
        EdgeKind.WR: "{target} read {element} in {key}, which {source} appended",
        EdgeKind.RW: "{source} read {key} "
        + ("empty" if empty else "up to {before}")
        + ", without {element}, which {target} appended",
    }[link.kind]
    before: dict[str, Any] = {"before": reason.before} if "{before}" in rule else {}
    elements = {"element": reason.element}
    return Proof.of(rule, operations=ends, values=elements, key=reason.key, **before)
