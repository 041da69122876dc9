"""D31 producer-id-of-two: two producers wrote under one producer id and epoch.

A broker tells what is sent again from what is new by producer id, producer epoch and sequence
number, so a pair of id and epoch is one producer's (KIP-98): of two that share it, one is taken for
the other, and what it sends is dropped or refused. The log says under which pair a record was
appended, and its value names the process that sent it.

A client goes on as another process after a send that it does not know the end of, and may keep its
id and epoch. So several processes under one pair are no anomaly. But a client never goes back to an
earlier process, and the brokers keep what comes under one pair in the order in which it was sent.
So if a process has records of a pair before and behind those of another one, they are two clients.

Not seen: two producers one of which had ended before the other one began.

Source: KIP-98, KIP-730; KAFKA-15552.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.entry import CatalogueEntry, Nearness
from checkers.facts import Judged, Tables
from checkers.metadata.view import MetadataView, counted
from checkers.proof import Proof
from checkers.slices import Split
from checkers.sources import Source, streamed
from checkers.table_check import TableCheck
from history.segment_format import PROCESS_SHIFT

__all__ = ["CHECKS", "NAME", "producer_ids_of_two"]

NAME: Final = "producer-id-of-two"
_COLUMNS: Final = ("key", "node", "offset", "producer_id", "producer_epoch", "value")
_BATCH: Final = ("key", "node", "producer_id", "producer_epoch")
"""What a stretch of records has in common, in the order of the table as far as that goes."""

_Pair = tuple[str, str, int, int]
"""Key, node, producer id, producer epoch."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A process whose records follow those of another one under the same pair."""

    process: int
    offset: int
    value: int


def producer_ids_of_two(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each pair of id and epoch in the logs of a bucket. Reads `replica_records`."""
    del seen
    of_key: dict[str, dict[tuple[int, int], Proof | None]] = {}
    for (key, node, *pair), turns in sorted(_turns(streamed(tables, "replica_records")).items()):
        proof = _judged(node, (pair[0], pair[1]), turns)
        told = of_key.setdefault(key, {})
        told[pair[0], pair[1]] = told.get((pair[0], pair[1])) or proof
    for key, told in of_key.items():
        yield key, counted(NAME, key, told.values())


def _turns(records: Source) -> Mapping[_Pair, list[_Turn]]:
    found: dict[_Pair, list[_Turn]] = {}
    for pair, turn in _changes(records):
        several = found.setdefault(pair, [])
        if not several or several[-1].process != turn.process:
            several.append(turn)
    return found


def _changes(records: Source) -> Iterator[tuple[_Pair, _Turn]]:
    """Yield the first record of each process in turn, pair by pair, in the order of offsets.

    The table has the order of key, node and offset; of each batch the same is yielded anew.
    """
    for batch in records(_COLUMNS):
        ours = pc.and_(
            pc.is_valid(batch.column("value")), pc.greater_equal(batch.column("producer_id"), 0)
        )
        rows = pa.Table.from_batches([batch.filter(ours)]).sort_by(
            [(name, "ascending") for name in (*_BATCH, "offset")]
        )
        process = rows["value"].to_numpy() >> PROCESS_SHIFT
        begins = np.ones(len(rows), dtype=np.bool_)
        begins[1:] = process[1:] != process[:-1]
        for name in _BATCH:
            codes = rows[name].combine_chunks()
            if pa.types.is_string(codes.type):
                codes = codes.dictionary_encode().indices
            numbers = codes.to_numpy()
            begins[1:] |= numbers[1:] != numbers[:-1]
        for row in rows.filter(pa.array(begins)).to_pylist():
            turn = _Turn(row["value"] >> PROCESS_SHIFT, row["offset"], row["value"])
            yield (row["key"], row["node"], row["producer_id"], row["producer_epoch"]), turn


def _judged(node: str, pair: tuple[int, int], turns: Sequence[_Turn]) -> Proof | None:
    first: dict[int, int] = {}
    for place, turn in enumerate(turns):
        if turn.process in first:
            return _proof(node, pair, turns[first[turn.process]], turns[place - 1], turn)
        first[turn.process] = place
    return None


def _proof(node: str, pair: tuple[int, int], before: _Turn, other: _Turn, behind: _Turn) -> Proof:
    return Proof.of(
        "the log of {node} has records of process {process} at {before} and {behind}, and of "
        "process {other_process} at {other} between them, all of producer id {producer_id} in "
        "producer epoch {producer_epoch}",
        offsets={"before": before.offset, "other": other.offset, "behind": behind.offset},
        values={
            "value_before": before.value,
            "other_value": other.value,
            "value_behind": behind.value,
        },
        node=node,
        process=before.process,
        other_process=other.process,
        producer_id=pair[0],
        producer_epoch=pair[1],
    )


CHECKS: Final = (
    TableCheck(
        entry=CatalogueEntry(
            id="D31",
            name=NAME,
            title="Two producers wrote under one producer id",
            rule="In the log of a replica, a record of one process stands between two of another "
            "process, all three under one producer id and producer epoch.",
            meaning="A broker takes the records of one producer for those of the other sent again, "
            "and drops them, or fences it.",
            nearness=Nearness.LOG,
            case="a producer id and epoch under which a key has records",
            source="KIP-98, KIP-730; KAFKA-15552",
            needs=("replica_records",),
        ),
        kernel=producer_ids_of_two,
        split=Split.RECORDS,
    ),
)
