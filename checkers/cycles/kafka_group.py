"""D14k transaction-cycle: Kafka's transactions precede each other in a circle.

Nodes are the moments of each record's append, each commit and each ok read at read_committed; edges
are ww (neighbours in a partition's log), wr (a commit before the read of one of its records), the
order of a process (begin, appends, commit, next begin; its reads), and real time. Every cycle of
these is an anomaly (never). A cycle of whole transactions by ww alone is reported and legal.

One pass over the files of records: a task sends, of each key, the runs of its log and which reads
saw which transaction. The gathered data is small compared with the records: each transaction and
each read has many records.

Meaning: A record stands in the log before one that was there already, or was read before it was
committed or sent.
Allowed if: only the writes of transactions that were open at the same time are ordered in a circle,
over several partitions (G0): Kafka does not isolate writers from each other
Case: a transaction that was to be committed, did not fail, and has a record in some log
Source: KIP-98; Adya, Liskov, O'Neil 2000
"""

from collections.abc import Iterator, Sequence
from functools import partial
from time import perf_counter
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.check_group import CheckGroup, GroupAnswers, Question
from fencepost.checkers.cycles.answers import Counted, answered
from fencepost.checkers.cycles.cycles import cycles_of
from fencepost.checkers.cycles.edges import EdgeKind
from fencepost.checkers.cycles.moments import (
    Committed,
    KeyTransactions,
    Moments,
    committed_of,
    moments_graph,
    written_round,
)
from fencepost.checkers.cycles.scan import passed
from fencepost.checkers.cycles.shortest import Cycle, CycleEdge
from fencepost.checkers.cycles.transaction_anomaly import TransactionAnomaly
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import OK, OPEN_NS, codes
from fencepost.checkers.runner.tables import SealedFile, keys_in, record_files
from fencepost.history.failure import HarnessError
from fencepost.history.models import Isolation
from fencepost.history.operation import F, Outcome

TRANSACTION_CYCLE: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.RECORD,
    needs=("transactions", "operations", "records"),
)
Ints = NDArray[np.int64]

COLUMNS: Final = ("key", "offset", "value", "operation", "f", "outcome", "call_ns", "return_ns")
"""The columns of RECORDS that are read."""

_UNPLACED: Final = -1
_FS: Final = (F.SEND, F.POLL, F.FINAL_READ)
_OUTCOMES: Final = (Outcome.OK, Outcome.FAIL, Outcome.INFO)
_SUFFIX = ("", "", "", "-process", "-realtime")


def _answer(question: Question) -> GroupAnswers:
    started = perf_counter()
    try:
        committed = committed_of(question.rows("transactions"))
    except HarnessError as error:
        return GroupAnswers.unknown((TRANSACTION_CYCLE.name,), str(error))
    files = record_files(question.run, question.manifest)
    scan = passed(question, files, partial(_of_keys, committed=committed))
    keys = sorted((key for key, _ in scan.contents), key=lambda one: one.key)
    result, anomalies = answered(
        TRANSACTION_CYCLE.name,
        judged(committed, keys),
        doubts=[*scan.unreadable, *(doubt for _, doubt in scan.contents if doubt)],
        figures={"transaction_count": len(committed.index)},
        seconds=perf_counter() - started,
    )
    return GroupAnswers(results=(result,), anomalies=anomalies)


def _of_keys(file: SealedFile, *, committed: Committed) -> Iterator[tuple[KeyTransactions, str]]:
    for key, records in keys_in(file, COLUMNS):
        yield key_transactions(key, records, committed)


def judged(committed: Committed, keys: list[KeyTransactions]) -> Counted:
    """Find cycles of moments, which never may be, and of whole transactions, which may."""
    moments = moments_graph(committed, keys)
    impossible = cycles_of(moments.graph)
    legal = cycles_of(written_round(committed, keys))
    never = [
        _spelled_moments(cycle, moments, committed=committed, keys=keys)
        for cycle in impossible.spelled
    ]
    allowed = [
        _spelled_interleaving(cycle, committed=committed, keys=keys) for cycle in legal.spelled
    ]
    return Counted(
        never=never,
        allowed=allowed,
        never_count=len(never) + sum(impossible.unspelled.values()),
        allowed_count=len(allowed) + sum(legal.unspelled.values()),
        case_count=len({int(one) for key in keys for one in np.unique(key.run)}),
    )


def key_transactions(
    key: str, records: pa.Table, committed: Committed
) -> tuple[KeyTransactions, str]:
    """Return what the records of a key (`COLUMNS`) say, and why its log is not known, or "".

    A log of which one offset has two values has no order that could be relied on.
    """
    value, operation, call_ns = (
        records[name].to_numpy() for name in ("value", "operation", "call_ns")
    )
    offset = pc.fill_null(records["offset"], _UNPLACED).to_numpy()
    return_ns = pc.fill_null(records["return_ns"], OPEN_NS).to_numpy()
    owner = committed.of_values(value)
    sure = (codes(records["outcome"], tuple(_OUTCOMES)) == OK) & (owner >= 0)
    reads = np.flatnonzero(sure & (codes(records["f"], tuple(_FS)) != 0))
    log, doubt = _log(key, offset, value, rows=np.flatnonzero(sure & (offset != _UNPLACED)))
    run = log[np.flatnonzero(np.diff(owner[log], prepend=-1))]
    pairs = np.stack([operation[reads], owner[reads]])
    _, first = np.unique(pairs, axis=1, return_index=True)
    seen = reads[first]
    found = KeyTransactions(
        key=key,
        run=owner[run],
        run_value=value[run],
        run_operation=operation[run],
        reader=operation[seen],
        seen=owner[seen],
        seen_value=value[seen],
        call_ns=call_ns[seen],
        return_ns=return_ns[seen],
    )
    return found, doubt


def _log(key: str, offset: Ints, value: Ints, *, rows: Ints) -> tuple[Ints, str]:
    """Return one row per offset in log order; no rows if an offset has two values."""
    rows = rows[np.lexsort((rows, offset[rows]))]
    again = np.flatnonzero(np.diff(offset[rows]) == 0)
    different = again[value[rows[again]] != value[rows[again + 1]]]
    if len(different):
        at = int(offset[rows[different[0]]])
        return rows[:0], f"{key} has two values at offset {at}: its log has no order"
    return np.delete(rows, again + 1), ""


def _spelled_moments(
    cycle: Cycle, moments: Moments, *, committed: Committed, keys: Sequence[KeyTransactions]
) -> TransactionAnomaly:
    """Return a cycle of moments, which is impossible."""
    words = _Words(moments, committed, keys)
    links = [link for link in cycle.links if link.kind is not EdgeKind.FREE]
    places = [link.source for link in cycle.links]
    runs = [place for place in places if moments.key[place] >= 0]
    operations = [int(moments.operation[place]) for place in places]
    return TransactionAnomaly(
        key=keys[int(moments.key[runs[0]])].key if runs else "",
        level=Isolation.STRICT_SERIALIZABLE,
        proof=Proof.of(
            "{kind}{suffix}: {steps}",
            operations=tuple(dict.fromkeys(one for one in operations if one >= 0)),
            values=tuple(int(moments.value[place]) for place in runs),
            kind=cycle.kind,
            suffix=_SUFFIX[cycle.order],
            steps=Proof.joined("; ", map(words.of, links)),
        ),
    )


class _Words:
    def __init__(
        self, moments: Moments, committed: Committed, keys: Sequence[KeyTransactions]
    ) -> None:
        self._moments = moments
        self._committed = committed
        self._keys = keys

    def of(self, link: CycleEdge) -> Proof:
        source, target = self._name(link.source), self._name(link.target)
        match link.kind:
            case EdgeKind.WW:
                key = self._keys[int(self._moments.key[link.target])].key
                before, value = (
                    int(self._moments.value[one]) for one in (link.source, link.target)
                )
                return Proof.of(
                    "in {key} the records of {target} from value {value} on stand after those "
                    "of {source} from value {before} on",
                    values={"value": value, "before": before},
                    key=key,
                    source=source,
                    target=target,
                )
            case EdgeKind.WR:
                rule = "{target} read of {source}, which had to be committed first"
            case EdgeKind.PROCESS:
                rule = "{target} began after {source} in one process"
            case _:
                rule = f"{{source}} had ended before {{target}} {self._begun(link.target)}"
        return Proof.of(rule, source=source, target=target)

    def _name(self, place: int) -> Proof:
        transaction = int(self._moments.transaction[place])
        if transaction < 0:
            operation = int(self._moments.operation[place])
            return Proof.of("operation {operation}", operations={"operation": operation})
        index = int(self._committed.index[transaction])
        return Proof.of("transaction {transaction}", transaction=index)

    def _begun(self, place: int) -> str:
        if self._moments.key[place] >= 0:
            return "began"
        return "was called" if self._moments.transaction[place] < 0 else "was to be committed"


def _spelled_interleaving(
    cycle: Cycle, *, committed: Committed, keys: Sequence[KeyTransactions]
) -> TransactionAnomaly:
    """Return a cycle of whole transactions by ww, which is legal."""
    steps, names = [], []
    for link in cycle.links:
        for key in keys:
            pair = (key.run[:-1] == link.source) & (key.run[1:] == link.target)
            if pair.any():
                place = int(pair.argmax())
                names.append(key.key)
                source, target = (int(committed.index[end]) for end in (link.source, link.target))
                rule = "{target} wrote to {key} after {source}"
                steps.append(
                    Proof.of(
                        rule,
                        operations={"written_by": int(key.run_operation[place + 1])},
                        values={"written": int(key.run_value[place + 1])},
                        target=target,
                        key=key.key,
                        source=source,
                    )
                )
                break
    return TransactionAnomaly(
        key=names[0] if names else "",
        level=Isolation.READ_UNCOMMITTED,
        proof=Proof.of(
            "{kind}{suffix}, legal in Kafka: transactions were open at the same time and "
            "interleave: {steps} (one component of {transactions} transactions)",
            kind="G0",
            suffix="",
            steps=Proof.joined("; ", steps),
            transactions=cycle.transactions,
        ),
    )


CHECKS: Final = (
    CheckGroup(name="transaction cycles", entries=(TRANSACTION_CYCLE,), answer=_answer),
)
