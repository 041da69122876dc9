"""D12 hanging-transaction: A transaction that cannot be ended holds up the readers.

Every producer has ended and every transaction has had the time to be aborted at its time-out, and
the last stable offset of a key is below its high watermark. Or it had caught up, and in the end the
log of each replica that goes so far has transactional records without a marker. A key with
transactions whose last stable offset was not seen so late is unknown.

Readers at read_committed stop at the last stable offset, the first record of a transaction that is
open in the log. The coordinator ends every transaction that it knows of, at its time-out at the
latest. One that it does not know of (a record that was appended after its transaction's marker) is
never ended.

The evidence is in what the leader said when every producer had ended (`stable_offsets`): below the
high watermark when all time-outs had passed. A second, independent one is in the logs themselves
(`replica_records`): transactional records with no marker of their producer after them, on every
replica whose log goes so far. It stands alone where the last stable offset had caught up and a
record that was still on its way came afterwards: when no producer is left, and everything had
ended, nothing but such a record can open a transaction.

Sound because the high watermark was asked for before the last stable offset: if that is lower, a
transaction was open at that moment. A replica that only lacks the last marker, since it was behind
when it stopped, proves nothing: the marker is on another.

Meaning: No consumer at read_committed is given any later record of the key.
Case: a key that a transaction wrote to and whose last stable offset was asked for
Source: KIP-890, KAFKA-14402
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fencepost.checkers.anomaly import Found, found, none
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.proof import Proof
from fencepost.checkers.transactions.open_transactions import OpenTransaction

HANGING: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    needs=("transactions", "stable_offsets"),
)

_LISTED_MAX: Final = 5

Row = Mapping[str, Any]


def hanging_transactions(
    stable_offsets: pa.Table,
    *,
    transactions: pa.Table,
    left_open: Mapping[str, Sequence[OpenTransaction]],
) -> Iterator[tuple[str, Found]]:
    """Yield the findings on every key that a transaction wrote to or that was asked for.

    `left_open`: the transactions that are open in the logs as the nodes left them; empty if these
    were not read.
    """
    last: dict[str, Row] = {}
    for row in stable_offsets.sort_by("time_ns").to_pylist():
        last[row["key"]] = row
    written = {key for keys in transactions["keys"].to_pylist() for key in keys}
    for key in sorted(written | last.keys()):
        yield key, _judged(key, last.get(key), left_open.get(key, ()), written=key in written)


def _judged(
    key: str, row: Row | None, left_open: Sequence[OpenTransaction], *, written: bool
) -> Found:
    if row is None:
        doubt = f"the end of {key} was not asked for"
        return none(HANGING.name, key, cases=0, doubt=doubt)
    behind = row["last_stable_offset"] < row["high_watermark"]
    if behind and not row["due"]:
        doubt = f"a transaction of {key} was open, and had not been given the time to be aborted"
        return none(HANGING.name, key, cases=0, doubt=doubt)
    if not behind and not left_open:
        return none(HANGING.name, key, cases=int(written))
    proof = _proof(row, left_open, behind=behind)
    return found(HANGING.name, key, cases=1, never=np.arange(1), proof=lambda _: proof)


def _proof(row: Row, left_open: Sequence[OpenTransaction], *, behind: bool) -> Proof:
    stable, end = row["last_stable_offset"], row["high_watermark"]
    rule = "the last stable offset had reached {high_watermark} when every producer had ended"
    if behind:
        rule = (
            "the last stable offset stood at {last_stable_offset} below the high watermark "
            "{high_watermark} when every producer had ended and every transaction had had the "
            "time to"
        )
    offsets = {"last_stable_offset": stable if behind else None, "high_watermark": end}
    ended = Proof.of(rule, offsets=offsets)
    return Proof.joined("; ", [ended, *map(_clause, left_open[:_LISTED_MAX])])


def _clause(one: OpenTransaction) -> Proof:
    return Proof.of(
        "the log has {record_count} records of producer {producer_id} (epoch {producer_epoch}) "
        "from offset {first_offset} on and no marker after them, on {nodes}",
        offsets={"first_offset": one.first_offset},
        values=one.values,
        record_count=one.record_count,
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        nodes=", ".join(one.nodes),
    )
