"""Kafka's transactions: what must not be circular, and what may be.

Kafka's promises to its producers and its readers at read_committed (KIP-98): the records of a
transaction become readable when it is committed and not before; each append takes effect at one
moment between the begin of its transaction and the call of its commit; a partition's log holds the
records in the order of these moments. It does not isolate writers: transactions that are open at
the same time interleave as they please, in each partition differently. So

- a cycle of whole transactions by ww alone (G0) is legal and reported as such (`written_round`);
- a cycle of *moments* is not (`moments_graph`): its nodes are the append of each run of a
  transaction's neighbouring records in a log, each commit, and each ok poll or final read. Edges
  are ww (from a run to the next one in the log), wr (from a commit to each read of one of its
  records), from each run to its commit, the order of a process (a commit that was acknowledged,
  before the runs of its process's next transaction), and real time: what ended before another thing
  was called. Every edge is true of moments, so a cycle is impossible. Since only commits lead to
  reads and nothing but real time leads on from these, every cycle needs the order of a process or
  real time: G0-process, G0-realtime, G1c-realtime, all of them never. (A consumer may fetch before
  it is polled. That a read took place after its call is used for nothing but what the transitivity
  of real time gives anyway.)

There are no rw edges: a poll that does not return a record says nothing of it (it may have had
enough), and what a complete final read lacks is the matter of lost-write and unseen. Producers in
transactions do not read; where one consumes, processes and produces, its reads are ordinary polls
here, and what it read before it wrote is in the order of real time.

Only transactions whose commit was asked for and did not surely fail take part, and only their
records that an acknowledgement or an ok read placed in the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.cycles.edges import EdgeKind
from fencepost.checkers.cycles.graph import Graph
from fencepost.checkers.cycles.order import Events, realtime
from fencepost.checkers.rows import OPEN_NS
from fencepost.history.operation import Outcome

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Committed:
    """The transactions that take part, parallel arrays, by index."""

    index: Ints
    process: Ints
    begin_ns: Ints
    end_call_ns: Ints
    """The call of the commit; that of the begin if no more is known."""
    return_ns: Ints
    """`OPEN_NS` if the commit was not acknowledged."""
    values: Ints
    """All values of all of them, ascending …"""
    owner: Ints
    """… and whose each is, by place."""

    def of_values(self, values: Ints) -> Ints:
        """Return the transaction of each value, by place; -1 of one that is in none."""
        if not len(self.values):
            return np.full(len(values), -1, np.int64)
        place = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.where(self.values[place] == values, self.owner[place], -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyTransactions:
    """The account of one partition. Transactions by place in `Committed`."""

    key: str
    run: Ints
    """Of each run in the log, its transaction …"""
    run_value: Ints
    """… its first value …"""
    run_operation: Ints
    """… and the operation that sent or returned it."""
    reader: Ints
    """Of each read and transaction that it saw here: the operation …"""
    seen: Ints
    """… the transaction …"""
    seen_value: Ints
    """… a value of it …"""
    call_ns: Ints
    return_ns: Ints
    """… and when the read was called and returned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """A graph whose nodes are moments, and what each of them is."""

    graph: Graph
    """Its `transaction` numbers the moments by time."""
    transaction: Ints
    """The transaction of each moment, by place in `Committed`; -1 for a read."""
    operation: Ints
    """The operation of a read or of a run; -1 for a commit."""
    key: Ints
    """The key of a run, by place in the sequence of keys; -1 for others."""
    value: Ints
    """The first one of a run; of others 0."""


def committed_of(transactions: pa.Table) -> Committed:
    """Return the transactions that take part, of rows of TRANSACTIONS."""
    rows = [
        row
        for row in transactions.sort_by("index").to_pylist()
        if row["intent"] == "commit" and row["outcome"] != Outcome.FAIL.value
    ]
    values = np.array([value for row in rows for value in row["values"]], np.int64)
    owner = np.repeat(np.arange(len(rows)), [len(row["values"]) for row in rows])
    order = np.argsort(values, kind="stable")
    return Committed(
        index=np.array([row["index"] for row in rows], np.int64),
        process=np.array([row["process"] for row in rows], np.int64),
        begin_ns=np.array([row["begin_ns"] for row in rows], np.int64),
        end_call_ns=np.array([_end_call_ns(row) for row in rows], np.int64),
        return_ns=np.array([_return_ns(row) for row in rows], np.int64),
        values=values[order],
        owner=owner[order].astype(np.int64),
    )


def _end_call_ns(row: dict[str, int]) -> int:
    return row["begin_ns"] if row["end_call_ns"] is None else row["end_call_ns"]


def _return_ns(row: dict[str, object]) -> int:
    ended = row["outcome"] == Outcome.OK.value and isinstance(row["return_ns"], int)
    return int(str(row["return_ns"])) if ended else OPEN_NS


def written_round(committed: Committed, keys: Sequence[KeyTransactions]) -> Graph:
    """Return the graph of whole transactions by ww alone."""
    source = np.concatenate([np.empty(0, np.int64), *(key.run[:-1] for key in keys)])
    target = np.concatenate([np.empty(0, np.int64), *(key.run[1:] for key in keys)])
    return Graph(
        transaction=np.arange(len(committed.index)),
        node_count=len(committed.index),
        source=source,
        target=target,
        kind=np.full(len(source), EdgeKind.WW, np.int8),
    )


def moments_graph(committed: Committed, keys: Sequence[KeyTransactions]) -> Moments:
    """Return the graph of moments: of runs, commits and reads, each from its earliest time on."""
    none = np.empty(0, np.int64)
    runs = np.concatenate([none, *(key.run for key in keys)])
    reader, first = np.unique(
        np.concatenate([none, *(key.reader for key in keys)]), return_index=True
    )
    call_ns, return_ns = (
        np.concatenate([none, *(getattr(key, name) for key in keys)])[first]
        for name in ("call_ns", "return_ns")
    )
    count = len(committed.index)
    # Runs, then commits, then reads, numbered anew by the earliest time that each may have.
    earliest = np.concatenate([committed.begin_ns[runs], committed.end_call_ns, call_ns])
    order = np.argsort(earliest, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    of_run, commit, of_read = np.split(place, [len(runs), len(runs) + count])
    latest = np.concatenate([np.full(len(runs), OPEN_NS), committed.return_ns, return_ns])
    edges = [
        (*_neighbours(keys, of_run), EdgeKind.WW),
        (*_seen(keys, reader, commit=commit, of_read=of_read), EdgeKind.WR),
        (of_run, commit[runs], EdgeKind.FREE),
        (*_processes(committed, runs, commit=commit, of_run=of_run), EdgeKind.PROCESS),
    ]
    events = Events(called_ns=earliest[order], ended_ns=latest[order])
    barriers = realtime(events)
    kinds = [np.full(len(source), kind, np.int8) for source, _, kind in edges]
    kinds.append(np.full(len(barriers.source), EdgeKind.FREE, np.int8))
    kinds[-1][: barriers.entries] = EdgeKind.REALTIME
    key = np.repeat(np.arange(len(keys)), [len(one.run) for one in keys])
    rest = np.full(count + len(reader), -1)
    return Moments(
        graph=Graph(
            transaction=np.arange(len(order)),
            node_count=len(order) + barriers.count,
            source=np.concatenate([*(edge[0] for edge in edges), barriers.source]),
            target=np.concatenate([*(edge[1] for edge in edges), barriers.target]),
            kind=np.concatenate(kinds),
        ),
        transaction=np.concatenate([runs, np.arange(count), np.full(len(reader), -1)])[order],
        operation=np.concatenate(
            [none, *(one.run_operation for one in keys), np.full(count, -1), reader]
        )[order],
        key=np.concatenate([key, rest])[order],
        value=np.concatenate([none, *(one.run_value for one in keys), np.zeros_like(rest)])[order],
    )


def _neighbours(keys: Sequence[KeyTransactions], of_run: Ints) -> tuple[Ints, Ints]:
    """Return edges from each run to the next one of its log."""
    last = np.cumsum([len(key.run) for key in keys], dtype=np.int64) - 1
    every = np.delete(np.arange(len(of_run)), last[last >= 0])
    every = every[every + 1 < len(of_run)]
    return of_run[every], of_run[every + 1]


def _seen(
    keys: Sequence[KeyTransactions], reader: Ints, *, commit: Ints, of_read: Ints
) -> tuple[Ints, Ints]:
    none = np.empty(0, np.int64)
    seen = np.concatenate([none, *(key.seen for key in keys)])
    by = np.concatenate([none, *(key.reader for key in keys)])
    return commit[seen], of_read[np.searchsorted(reader, by)]


def _processes(
    committed: Committed, runs: Ints, *, commit: Ints, of_run: Ints
) -> tuple[Ints, Ints]:
    """Return edges from acknowledged commits to the runs of the process's next transaction."""
    count = len(committed.index)
    by_process = np.lexsort((committed.begin_ns, committed.process))
    before = np.full(count, -1)
    same = np.flatnonzero(np.diff(committed.process[by_process]) == 0)
    before[by_process[same + 1]] = by_process[same]
    last = before[runs]
    known = last >= 0
    known[known] = committed.return_ns[last[known]] <= committed.begin_ns[runs[known]]
    return commit[last[known]], of_run[known]
