"""D9 skipped-send and D10 precommitted-read: single transactions in the records of a key.

In a recorded run a send is an operation of one record, so the operation with several records is the
transaction: its records of one key, in the order in which they were sent.

*D9*: between two neighbours of these, by position in the version order, stand values of others. A
log promises nothing else, so it is reported and never wrong. Neighbours whose offsets are not both
known (a crashed send that was not read) say nothing.

*D10*: an ok read had returned a value before the client called commit or abort of the transaction
that wrote it, be the reader another client or the client itself: at read_committed no reader is
given what is not committed. Sound because values are unique, and because both times are of one
clock: the read had *ended* before the end of the transaction was *asked* for, so it cannot have
been committed, whatever the outcome was then. A transaction that was never ended is D2's. Readers
of transactional keys are at read_committed, as for D2 and D11.

Each call is given one bucket of `records`, and all transactions.

Source: Jepsen's Kafka workload (`int-send-skip`, `precommitted-read`); KIP-98.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.anomaly import Found, found, none
from checkers.entry import CatalogueEntry, Strength
from checkers.facts import Judged, Tables
from checkers.membership import has_repeats
from checkers.metadata.view import MetadataView
from checkers.proof import Proof
from checkers.slices import Split
from checkers.table_check import TableCheck
from history.schema import F, Outcome

__all__ = ["CHECKS", "PRECOMMITTED", "SKIPPED", "precommitted_reads", "skipped_sends"]

SKIPPED: Final = "skipped-send"
PRECOMMITTED: Final = "precommitted-read"

_UNKNOWN: Final = -1
_NEVER_NS: Final = -1
_COLUMNS: Final = ("key", "offset", "value", "operation", "f", "outcome", "return_ns")

_Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """The values that transactions sent to one key, as parallel arrays, in the order of sending."""

    value: _Numbers
    transaction: _Numbers

    def place_of(self, values: _Numbers) -> _Numbers:
        """Return the place of each of these values here; -1 without one."""
        if not len(self.value):
            return np.full(len(values), -1, dtype=np.int64)
        order = np.argsort(self.value, kind="stable")
        place = np.searchsorted(self.value[order], values)
        place[place == len(order)] = 0
        return np.where(self.value[order[place]] == values, order[place], -1).astype(np.int64)


def skipped_sends(tables: Tables, seen: MetadataView) -> Judged:  # noqa: ARG001  # as all kernels
    """Find neighbours of a transaction with others between. Reads `records`, `transactions`."""
    for key, records, written in _keys(tables):
        doubt = _doubt(records)
        if doubt:
            yield key, none(SKIPPED, key, cases=0, doubt=doubt)
        else:
            yield key, _skipped(key, records, written)


def precommitted_reads(tables: Tables, seen: MetadataView) -> Judged:  # noqa: ARG001  # as all kernels
    """Find reads of values before their commit, by key. Reads `records`, `transactions`."""
    ends = tables["transactions"]["end_call_ns"]
    end_ns = pc.fill_null(ends, _NEVER_NS).to_numpy()
    for key, records, written in _keys(tables):
        if doubt := _doubt(records):
            yield key, none(PRECOMMITTED, key, cases=0, doubt=doubt)
        else:
            yield key, _precommitted(key, records, written, end_ns)


def _doubt(records: pa.Table) -> str:
    """Return why the records of a key cannot be told apart; empty if they can."""
    sent = records.filter(pc.equal(records["f"], F.SEND.value))
    return "two sends carry one value" if has_repeats(_numbers(sent, "value")) else ""


def _keys(tables: Tables) -> Iterator[tuple[str, pa.Table, _Written]]:
    """Yield the keys of the bucket that transactions wrote to, in order."""
    transactions = tables["transactions"].combine_chunks()
    keys = pc.list_flatten(transactions["keys"])
    values = pc.list_flatten(transactions["values"]).to_numpy()
    owners = pc.list_parent_indices(transactions["keys"]).to_numpy()
    records = tables["records"].select(list(_COLUMNS))
    here = set(pc.unique(records["key"]).to_pylist())
    for key in sorted(here & set(pc.unique(keys).to_pylist())):
        mine = pc.equal(keys, key).to_numpy(zero_copy_only=False)
        written = _Written(value=values[mine], transaction=owners[mine].astype(np.int64))
        yield key, records.filter(pc.equal(records["key"], key)), written


def _numbers(table: pa.Table, name: str, null: int = _UNKNOWN) -> _Numbers:
    numbers: _Numbers = pc.fill_null(table[name], null).to_numpy()
    return numbers


def _mask(condition: pa.ChunkedArray) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = condition.to_numpy()
    return mask


def _skipped(key: str, records: pa.Table, written: _Written) -> Found:
    acknowledged = pc.equal(records["outcome"], Outcome.OK.value)
    read = pc.not_equal(records["f"], F.SEND.value)
    seen = records.filter(pc.and_(pc.or_(acknowledged, read), pc.is_valid(records["offset"])))
    offset, place = _offsets(seen, written)
    position = np.searchsorted(np.unique(_numbers(seen, "offset")), offset)
    known = offset != _UNKNOWN
    pair = known[1:] & known[:-1] & (np.diff(written.transaction) == 0)
    skips = np.flatnonzero(pair & (np.diff(position) > 1))
    operation = _numbers(seen, "operation")

    def proof(number: int) -> Proof:
        first, second = int(skips[number]), int(skips[number]) + 1
        between = int(position[second] - position[first]) - 1
        values = (int(written.value[first]), int(written.value[second]))
        return Proof.of(
            "transaction {transaction} sent value {value} (offset {offset}) and then "
            "value {later_value} (offset {later_offset}), with {between} records of others in "
            "between",
            operations={
                "operation": int(operation[place[first]]),
                "later_operation": int(operation[place[second]]),
            },
            offsets={"offset": int(offset[first]), "later_offset": int(offset[second])},
            values=dict(zip(("value", "later_value"), values, strict=True)),
            sources={"value": "operation", "offset": "operation"}
            | {"later_value": "later_operation", "later_offset": "later_operation"},
            transaction=written.transaction[first],
            between=between,
        )

    return found(
        SKIPPED,
        key,
        cases=int(np.count_nonzero(pair)),
        never=np.arange(0),
        allowed=np.arange(len(skips)),
        proof=proof,
    )


def _offsets(seen: pa.Table, written: _Written) -> tuple[_Numbers, _Numbers]:
    """Return (the offset of each value written, the row that told it); -1 where unknown."""
    offset = np.full(len(written.value), _UNKNOWN, dtype=np.int64)
    row = np.full(len(written.value), -1, dtype=np.int64)
    place = written.place_of(_numbers(seen, "value"))
    told = np.flatnonzero(place >= 0)[::-1]  # of several, the first one's is kept
    offset[place[told]] = _numbers(seen, "offset")[told]
    row[place[told]] = told
    return offset, row


def _precommitted(key: str, records: pa.Table, written: _Written, end_ns: _Numbers) -> Found:
    reads = records.filter(
        pc.and_(
            pc.equal(records["outcome"], Outcome.OK.value),
            pc.not_equal(records["f"], F.SEND.value),
        )
    )
    value, return_ns = _numbers(reads, "value"), _numbers(reads, "return_ns")
    place = written.place_of(value)
    row = np.flatnonzero(place >= 0)
    transaction = written.transaction[place[row]]
    judged_count = int(np.count_nonzero(end_ns[transaction] != _NEVER_NS))
    early = return_ns[row] < end_ns[transaction]
    row, transaction = row[early], transaction[early]
    operation, offset = _numbers(reads, "operation"), _numbers(reads, "offset")

    def proof(number: int) -> Proof:
        read, one = row[number], int(transaction[number])
        return Proof.of(
            "operation {operation} returned value {value} of transaction {transaction} by "
            "{return_}, and the client called commit or abort only at {end}",
            operations={"operation": int(operation[read])},
            offsets={"offset": int(offset[read])},
            values={"value": int(value[read])},
            times={"return_": int(return_ns[read]), "end": int(end_ns[one])},
            sources=dict.fromkeys(("value", "offset", "return_"), "operation"),
            transaction=one,
        )

    return found(PRECOMMITTED, key, cases=judged_count, never=np.arange(len(row)), proof=proof)


CHECKS: Final = (
    TableCheck(
        entry=CatalogueEntry(
            id="D9",
            name=SKIPPED,
            title="Others stand between the records of a transaction",
            rule="Two neighbouring records that a transaction sent to a key stand more than one "
            "position apart, the later one behind.",
            meaning="Transactions of several producers share the partition, as they may.",
            case="a step from a transaction's record to its next one on the key, both offsets "
            "known",
            source="Jepsen, workload `kafka`, `int-send-skip`; a partition keeps the order of a "
            "producer's records, and nothing more",
            strength=Strength.FIGURE,
            needs=("operations", "records", "transactions"),
        ),
        kernel=skipped_sends,
        tables=("records", "transactions"),
        split=Split.RECORDS,
    ),
    TableCheck(
        entry=CatalogueEntry(
            id="D10",
            name=PRECOMMITTED,
            title="A value was read before its transaction was to be committed",
            rule="An ok read at read_committed, of whatever client, had returned a value before "
            "the client that had sent it called commit or abort of its transaction.",
            meaning="Consumers act on what may still be taken back.",
            case="a read of a record whose transaction its client committed or aborted",
            source="Jepsen, workload `kafka`, `precommitted-read`; KIP-98",
            needs=("operations", "records", "transactions"),
        ),
        kernel=precommitted_reads,
        tables=("records", "transactions"),
        split=Split.RECORDS,
    ),
)
