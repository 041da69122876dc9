"""D32 wrong-marker: A log ends a transaction otherwise than its client was told.

The commit of a transaction was acknowledged, and in the log of a replica the first marker of its
producer behind one of its records aborts; or its abort was, and that marker commits; or the same
marker is the first one behind records of two such transactions.

A transaction's records lie in the logs of several keys, and in each a marker of its producer says
whether they count: a commit or an abort (KIP-98). The coordinator writes down what was decided,
answers the client, and sends the markers. So once a commit was acknowledged, the marker behind its
records commits, in every log that has them; once an abort was, it aborts.

Reads of clients show it only as long as they read: a marker that turns later hides the records from
all later readers, or shows them what was never to be seen.

Not judged: a transaction of which it is not known how it ended, and records without a marker behind
them (`hanging-transaction`).

Meaning: Records that were promised are hidden from whoever reads now, or what was taken back is
shown.
Case: a transaction whose end was acknowledged, in the log of a key
Source: KIP-98
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView, counted
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    needs=("transactions", "replica_records"),
)
NAME: Final = ENTRY.name
_Row = Mapping[str, Any]
_WORDS: Final = {True: "commits", False: "aborts"}


def wrong_markers(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each transaction in the logs of a bucket. Reads `transactions`, `replica_records`."""
    del seen
    ended = _ended(tables["transactions"])
    held = tables["replica_records"]
    held = held.filter(held["transactional"]) if len(held) else held
    for key in sorted(pc.unique(held["key"]).to_pylist()):
        mine = held.filter(pc.equal(held["key"], key))
        found: dict[int, Proof | None] = {}
        for node in sorted(pc.unique(mine["node"]).to_pylist()):
            for index, proof in _of_log(mine.filter(pc.equal(mine["node"], node)), node, ended):
                found[index] = found.get(index) or proof
        yield key, counted(NAME, key, found.values())


def _ended(transactions: pa.Table) -> Mapping[int, _Row]:
    """Return the transactions whose end was acknowledged, by the values that they sent."""
    names = ["index", "process", "intent", "return_ns", "values"]
    ok = transactions.filter(pc.equal(transactions["outcome"], "ok")).select(names)
    return {value: row for row in ok.to_pylist() for value in row["values"]}


def _of_log(
    log: pa.Table, node: str, ended: Mapping[int, _Row]
) -> Iterator[tuple[int, Proof | None]]:
    """Yield a proof or None for each record of a known transaction with a marker behind it."""
    rows = log.sort_by([("producer_id", "ascending"), ("offset", "ascending")])
    producer = rows["producer_id"].to_numpy()
    marker = np.flatnonzero(rows["control"].to_numpy())
    behind = np.searchsorted(marker, np.arange(len(rows)))
    is_ended = behind < len(marker)
    is_ended[is_ended] &= producer[marker[behind[is_ended]]] == producer[is_ended]
    is_ended &= ~rows["control"].to_numpy() & pc.is_valid(rows["value"]).to_numpy()
    places = np.flatnonzero(is_ended)
    records = rows.take(pa.array(places)).select(["offset", "value"]).to_pylist()
    ends = rows.take(pa.array(marker[behind[places]])).select(["offset", "committed"]).to_pylist()
    first: dict[int, tuple[_Row, _Row]] = {}
    """Of each marker the first record that it ends, and its transaction."""
    for record, end in zip(records, ends, strict=True):
        told = ended.get(record["value"])
        if told is None or end["committed"] is None:
            continue
        before, other = first.setdefault(end["offset"], (record, told))
        if end["committed"] != (told["intent"] == "commit"):
            yield told["index"], _proof(node, record, end, told)
        elif other["index"] != told["index"]:
            yield told["index"], _of_two(node, (before, other), (record, told))
        else:
            yield told["index"], None


def _of_two(node: str, one: tuple[_Row, _Row], other: tuple[_Row, _Row]) -> Proof:
    (before, earlier), (behind, later) = one, other
    return Proof.of(
        "in the log of {node}, value {value} of transaction {transaction} at {offset} and value "
        "{value_behind} of transaction {other_transaction} at {behind} have no marker of their "
        "producer between them, and both transactions of process {process} were over for it",
        offsets={"offset": before["offset"], "behind": behind["offset"]},
        values={"value": before["value"], "value_behind": behind["value"]},
        node=node,
        transaction=earlier["index"],
        other_transaction=later["index"],
        process=later["process"],
    )


def _proof(node: str, record: _Row, end: _Row, told: _Row) -> Proof:
    return Proof.of(
        "process {process} was told at {returned} that transaction {transaction} is over "
        "({intent}), and in the log of {node} the marker at {marker}, behind its value {value} at "
        "{offset}, {does} it",
        offsets={"offset": record["offset"], "marker": end["offset"]},
        values={"value": record["value"]},
        times={"returned": told["return_ns"]},
        process=told["process"],
        transaction=told["index"],
        intent=told["intent"],
        node=node,
        does=_WORDS[end["committed"]],
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=wrong_markers,
        split=Split.RECORDS,
    ),
)
