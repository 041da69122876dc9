"""D9 skipped-send and D10 precommitted-read: single transactions in the records of a key.

In a recorded run a send is an operation of one record, so the operation with several records is the
transaction: its records of one key, in the order in which they were sent.

Each call is given one bucket of `records`, and all transactions.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found, none
from fencepost.checkers.entry import CatalogueEntry, Nearness, Strength
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.membership import distinct, has_repeats
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck
from fencepost.history.operation import F, Outcome

SKIPPED_ENTRY: Final = CatalogueEntry.of(
    """D9 skipped-send: Others stand between the records of a transaction.

    Two neighbouring records that a transaction sent to a key stand more than one position apart,
    the later one behind.

    A log promises nothing else, so it is reported and never wrong. Neighbours whose offsets are not
    both known (a crashed send that was not read) say nothing.

    Meaning: Transactions of several producers share the partition, as they may.
    Case: a step from a transaction's record to its next one on the key, both offsets known
    Source: Jepsen, workload `kafka`, `int-send-skip`; a partition keeps the order of a producer's
    records, and nothing more
    """,
    nearness=Nearness.REMAINS,
    strength=Strength.FIGURE,
    needs=("operations", "records", "transactions"),
)
SKIPPED: Final = SKIPPED_ENTRY.name
PRECOMMITTED_ENTRY: Final = CatalogueEntry.of(
    """D10 precommitted-read: A value was read before its transaction was to be committed.

    An ok read at read_committed, of whatever client, had returned a value before the client that
    had sent it called commit or abort of its transaction.

    Sound because values are unique, and because both times are of one clock: the read had *ended*
    before the end of the transaction was *asked* for, so it cannot have been committed, whatever
    the outcome was then. A transaction that was never ended is aborted-read's. Readers of
    transactional keys are at read_committed, as for aborted-read and torn-transaction.

    Meaning: Consumers act on what may still be taken back.
    Case: a read of a record whose transaction its client committed or aborted
    Source: Jepsen, workload `kafka`, `precommitted-read`; KIP-98
    """,
    nearness=Nearness.RECORD,
    needs=("operations", "records", "transactions"),
)
PRECOMMITTED: Final = PRECOMMITTED_ENTRY.name

_UNKNOWN: Final = -1
_NEVER_NS: Final = -1
_PENDING: Final = 1 << 20
_COLUMNS: Final = ("key", "offset", "value", "operation", "f", "outcome", "return_ns")
_READ: Final = ("operation", "offset", "value", "return_ns")

_Numbers = NDArray[np.int64]


class _Written:
    """The values that transactions sent to one key, in the order of sending."""

    def __init__(self, value: _Numbers, transaction: _Numbers) -> None:
        self.value, self.transaction = value, transaction
        """Parallel arrays."""
        self._order = np.argsort(value, kind="stable")
        self._sorted = value[self._order]

    def place_of(self, values: _Numbers) -> _Numbers:
        """Return the place of each of these values here; -1 without one."""
        place = np.searchsorted(self._sorted, values)
        place[place == len(self._sorted)] = 0
        return np.where(self._sorted[place] == values, self._order[place], -1).astype(np.int64)


class _Key(Protocol):
    """A key, judged by its records, which come batch by batch: a night has too many at a time."""

    def add(self, records: pa.RecordBatch) -> None:
        """Note these records."""

    def found(self, key: str) -> Found:
        """Return the findings on the key."""


def skipped_sends(tables: Tables, seen: MetadataView) -> Judged:  # noqa: ARG001  # as all kernels
    """Find neighbours of a transaction with others between. Reads `records`, `transactions`."""
    return _judged(SKIPPED, tables, _Skips)


def precommitted_reads(tables: Tables, seen: MetadataView) -> Judged:  # noqa: ARG001  # as all kernels
    """Find reads of values before their commit, by key. Reads `records`, `transactions`."""
    ends = [
        pc.fill_null(batch.column("end_call_ns"), _NEVER_NS).to_numpy()
        for batch in streamed(tables, "transactions")(("end_call_ns",))
    ]
    end_ns = np.concatenate([np.empty(0, np.int64), *ends])
    return _judged(PRECOMMITTED, tables, lambda written: _EarlyReads(written, end_ns))


def _judged(check: str, tables: Tables, judge: Callable[[_Written], _Key]) -> Judged:
    """Judge the keys of the bucket that transactions wrote to, in order."""
    records = streamed(tables, "records")
    here = {
        key for batch in records(("key",)) for key in pc.unique(batch.column("key")).to_pylist()
    }
    written = _written(streamed(tables, "transactions"), here)
    judged = {key: judge(mine) for key, mine in written.items()}
    sent: dict[str, list[_Numbers]] = {key: [] for key in judged}
    for batch in records(_COLUMNS):
        for key in pc.unique(batch.column("key")).to_pylist():
            if key in judged:
                mine = batch.filter(pc.equal(batch.column("key"), key))
                judged[key].add(mine)
                sends = mine.filter(pc.equal(mine.column("f"), F.SEND.value))
                sent[key].append(_numbers(sends, "value"))
    for key in sorted(judged):
        if has_repeats(np.concatenate(sent.pop(key))):
            yield key, none(check, key, cases=0, doubt="two sends carry one value")
        else:
            yield key, judged[key].found(key)


def _written(transactions: Source, here: set[str]) -> Mapping[str, _Written]:
    """Return what transactions, numbered as they stand, sent to each of these keys."""
    told: dict[str, list[tuple[_Numbers, _Numbers]]] = {}
    count = 0
    for batch in transactions(("keys", "values")):
        keys = pc.list_flatten(batch.column("keys"))
        values = pc.list_flatten(batch.column("values")).to_numpy()
        owners = pc.list_parent_indices(batch.column("keys")).to_numpy() + count
        for key in here & set(pc.unique(keys).to_pylist()):
            mine = pc.equal(keys, key).to_numpy(zero_copy_only=False)
            told.setdefault(key, []).append((values[mine], owners[mine].astype(np.int64)))
        count += len(batch)
    return {
        key: _Written(*(np.concatenate(parts) for parts in zip(*several, strict=True)))
        for key, several in told.items()
    }


def _numbers(records: pa.RecordBatch, name: str) -> _Numbers:
    numbers: _Numbers = pc.fill_null(records.column(name), _UNKNOWN).to_numpy()
    return numbers


class _Skips:
    """A key, judged for what stands between the neighbours of a transaction."""

    def __init__(self, written: _Written) -> None:
        self._written = written
        self._offset = np.full(len(written.value), _UNKNOWN, dtype=np.int64)
        self._operation = np.full(len(written.value), _UNKNOWN, dtype=np.int64)
        """Of each value the offset, and the operation that told it; -1 where unknown."""
        self._taken = np.empty(0, np.int64)
        self._further: list[_Numbers] = []
        """The offsets at which anything stands, in order; and more, not in it yet."""

    def add(self, records: pa.RecordBatch) -> None:
        """Note the offsets that these records tell."""
        acknowledged = pc.equal(records.column("outcome"), Outcome.OK.value)
        read = pc.not_equal(records.column("f"), F.SEND.value)
        placed = pc.is_valid(records.column("offset"))
        seen = records.filter(pc.and_(pc.or_(acknowledged, read), placed))
        offset, operation = _numbers(seen, "offset"), _numbers(seen, "operation")
        self._further.append(distinct(offset))
        if sum(map(len, self._further)) > len(self._taken) + _PENDING:
            self._in_order()
        place = self._written.place_of(_numbers(seen, "value"))
        told = np.flatnonzero(place >= 0)[::-1]  # of several, the first one's is kept
        told = told[self._offset[place[told]] == _UNKNOWN]
        self._offset[place[told]] = offset[told]
        self._operation[place[told]] = operation[told]

    def _in_order(self) -> _Numbers:
        """Return the offsets at which anything stands, in order."""
        self._taken = distinct(np.concatenate([self._taken, *self._further]))
        self._further = []
        return self._taken

    def found(self, key: str) -> Found:
        """Return the steps over others, which are allowed."""
        offset, operation = self._offset, self._operation
        value, transaction = self._written.value, self._written.transaction
        position = np.searchsorted(self._in_order(), offset)
        known = offset != _UNKNOWN
        pair = known[1:] & known[:-1] & (np.diff(transaction) == 0)
        skips = np.flatnonzero(pair & (np.diff(position) > 1))

        def proof(number: int) -> Proof:
            first, second = int(skips[number]), int(skips[number]) + 1
            return Proof.of(
                "transaction {transaction} sent value {value} (offset {offset}) and then "
                "value {later_value} (offset {later_offset}), with {between} records of others in "
                "between",
                operations={
                    "operation": int(operation[first]),
                    "later_operation": int(operation[second]),
                },
                offsets={"offset": int(offset[first]), "later_offset": int(offset[second])},
                values={"value": int(value[first]), "later_value": int(value[second])},
                sources={"value": "operation", "offset": "operation"}
                | {"later_value": "later_operation", "later_offset": "later_operation"},
                transaction=transaction[first],
                between=int(position[second] - position[first]) - 1,
            )

        return found(
            SKIPPED,
            key,
            cases=int(np.count_nonzero(pair)),
            never=np.arange(0),
            allowed=np.arange(len(skips)),
            proof=proof,
        )


class _EarlyReads:
    """A key, judged for reads of what was not to be committed yet."""

    def __init__(self, written: _Written, end_ns: _Numbers) -> None:
        self._written, self._end_ns = written, end_ns
        self._judged_count = 0
        self._early: list[dict[str, int]] = []

    def add(self, records: pa.RecordBatch) -> None:
        """Judge the reads among these records."""
        acknowledged = pc.equal(records.column("outcome"), Outcome.OK.value)
        read = pc.not_equal(records.column("f"), F.SEND.value)
        reads = records.filter(pc.and_(acknowledged, read))
        place = self._written.place_of(_numbers(reads, "value"))
        row = np.flatnonzero(place >= 0)
        transaction = self._written.transaction[place[row]]
        end_ns = self._end_ns[transaction]
        self._judged_count += int(np.count_nonzero(end_ns != _NEVER_NS))
        early = _numbers(reads, "return_ns")[row] < end_ns
        told = reads.take(pa.array(row[early])).select(list(_READ)).to_pylist()
        for one, owner in zip(told, transaction[early].tolist(), strict=True):
            self._early.append(one | {"transaction": owner})

    def found(self, key: str) -> Found:
        """Return the early reads."""

        def proof(number: int) -> Proof:
            one = self._early[number]
            return Proof.of(
                "operation {operation} returned value {value} of transaction {transaction} by "
                "{return_}, and the client called commit or abort only at {end}",
                operations={"operation": one["operation"]},
                offsets={"offset": one["offset"]},
                values={"value": one["value"]},
                times={"return_": one["return_ns"], "end": int(self._end_ns[one["transaction"]])},
                sources=dict.fromkeys(("value", "offset", "return_"), "operation"),
                transaction=one["transaction"],
            )

        return found(
            PRECOMMITTED,
            key,
            cases=self._judged_count,
            never=np.arange(len(self._early)),
            proof=proof,
        )


CHECKS: Final = (
    TableCheck(
        entry=SKIPPED_ENTRY,
        kernel=skipped_sends,
        tables=("records", "transactions"),
        split=Split.RECORDS,
    ),
    TableCheck(
        entry=PRECOMMITTED_ENTRY,
        kernel=precommitted_reads,
        tables=("records", "transactions"),
        split=Split.RECORDS,
    ),
)
