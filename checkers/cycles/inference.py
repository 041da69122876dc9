"""The inference from the lists of whole keys: their transactions, their order, and what is odd.

The unit is a table of whole keys: a row group of a sealed file, which holds about a million steps.
Keys share nothing here; what crosses them are edges (`edges`) and the transactions that were seen
to have been committed.
"""

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.cycles.dependencies import dependencies, observed
from fencepost.checkers.cycles.edges import Edges, merged, spans_backwards
from fencepost.checkers.cycles.list_anomalies import list_anomalies
from fencepost.checkers.cycles.steps import TransactionSteps, steps_of
from fencepost.checkers.cycles.transaction_anomaly import Lists, TransactionAnomalies
from fencepost.checkers.cycles.versions import KeyVersions, versions_of
from fencepost.checkers.cycles.visits import visits_of

Ints = NDArray[np.int64]

NODE: Final = np.dtype(
    [
        ("transaction", "<i8"),
        ("process", "<i8"),
        ("call_ns", "<i8"),
        # `checkers.rows.OPEN_NS` if its end was never seen.
        ("return_ns", "<i8"),
        # OK, FAIL or INFO of `checkers.rows`.
        ("outcome", "<i8"),
    ]
)
Nodes = NDArray[np.void]
"""An array of `NODE`."""

_DOUBTS_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Inferred:
    """The inference from one table of whole keys."""

    names: list[str]
    """The names of its keys."""
    reads: int
    """Reads of ok transactions whose list is known."""
    nodes: Nodes
    """The transactions whose first step is here: each transaction is in one table."""
    last: int
    """The last transaction that has any step here; -1 without any."""
    observed: Ints
    """Info transactions that an ok one read of."""
    edges: Edges
    spans: Ints
    """The spans of edges and fans that lead backwards."""
    doubts: tuple[str, ...]
    """The reasons why keys of it cannot be judged."""
    lists: Lists = field(repr=False)

    @property
    def list_anomalies(self) -> tuple[TransactionAnomalies, ...]:
        """Return what is wrong with the lists; computed at each call."""
        return tuple(list_anomalies(self.lists))


def inferred(table: pa.Table) -> Inferred:
    """Return what these rows of MICRO_OPERATIONS (`steps.COLUMNS`) say.

    Raises ValueError for rows that make no sense (`steps.steps_of`).
    """
    steps = steps_of(table)
    versions = versions_of(steps)
    nodes, last, doubts = _nodes(steps)
    if len(versions.repeated):
        doubts = (*doubts, *_repeats(steps, versions))
        steps = _without(steps, np.unique(steps.key[versions.repeated]))
        versions = versions_of(steps)
    visits = visits_of(steps)
    edges, spans = dependencies(steps, versions, visits)
    return Inferred(
        names=steps.names,
        reads=int(steps.known.sum()),
        nodes=nodes,
        last=last,
        observed=observed(steps, versions),
        edges=edges,
        spans=merged([spans, spans_backwards(edges)]),
        doubts=doubts,
        lists=Lists(steps, versions, visits),
    )


def _nodes(steps: TransactionSteps) -> tuple[Nodes, int, tuple[str, ...]]:
    first = np.flatnonzero(steps.position == 0)
    first = first[np.argsort(steps.transaction[first], kind="stable")]
    nodes = np.zeros(len(first), NODE)
    for name in NODE.names or ():
        nodes[name] = getattr(steps, name)[first]
    doubts: tuple[str, ...] = ()
    backwards = np.flatnonzero(np.diff(nodes["call_ns"]) < 0)
    if len(backwards):
        one = int(nodes["transaction"][backwards[0] + 1])
        doubts = (f"transactions are not numbered by their calls: {one} was called earlier",)
    return nodes, int(steps.transaction.max(initial=-1)), doubts


def _repeats(steps: TransactionSteps, versions: KeyVersions) -> list[str]:
    rows = versions.repeated[:_DOUBTS_MAX].tolist()
    more = len(versions.repeated) - len(rows)
    words = [
        f"{int(steps.value[row])} is appended to {steps.names[steps.key[row]]} more than once, "
        f"again by transaction {int(steps.transaction[row])}: its elements cannot be told apart"
        for row in rows
    ]
    return [*words, f"and {more} more appends repeat a value"] if more else words


def _without(steps: TransactionSteps, keys: Ints) -> TransactionSteps:
    """Return the steps of the other keys."""
    gone = np.isin(np.arange(len(steps.names)), keys)
    place = np.cumsum(~gone) - 1
    rows = np.flatnonzero(~gone[steps.key])
    columns = {
        name: getattr(steps, name)[rows]
        for name in TransactionSteps.__slots__
        if name not in ("names", "key", "elements")
    }
    names = [name for name, lost in zip(steps.names, gone.tolist(), strict=True) if not lost]
    return replace(steps, names=names, key=place[steps.key[rows]], **columns)
