"""D33 log-epoch-went-back: A log goes on in an older leader epoch.

In the log of a replica, a record bears a lower leader epoch than one before it.

A batch bears the leader epoch of the broker that appended it. A leader appends in its own epoch
alone, a later leader has a higher one, and a follower that has anything else than its leader cuts
it off before it copies (KIP-101). So in each log the epochs grow from offset to offset, whoever led
and whatever was lost.

The logs are whole evidence by themselves. Batches without an epoch, of formats before KIP-101, are
left out.

Meaning: A deposed leader wrote behind its successor, or a follower copied from its leader without
cutting off what differs: replicas diverge, and records are lost.
Case: a replica's log with records
Source: KIP-101, KIP-279; `LeaderEpochFileCache`
"""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from checkers.entry import CatalogueEntry, Nearness
from checkers.facts import Judged, Tables
from checkers.metadata.view import MetadataView, counted
from checkers.proof import Proof
from checkers.slices import Split
from checkers.sources import streamed
from checkers.table_check import TableCheck

__all__ = ["CHECKS", "NAME", "log_epochs_that_went_back"]

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    needs=("replica_records",),
)
NAME: Final = ENTRY.name
_COLUMNS: Final = ("key", "node", "offset", "leader_epoch")

_Row = Mapping[str, Any]


def log_epochs_that_went_back(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each log of a bucket. Reads `replica_records`, which has the order of the logs."""
    del seen
    found: dict[str, dict[str, Proof | None]] = {}
    last: _Row | None = None
    for batch in streamed(tables, "replica_records")(_COLUMNS):
        rows = pa.Table.from_batches([batch.filter(pc.field("leader_epoch") >= 0)])
        epochs = rows["leader_epoch"].to_numpy()
        begins = np.flatnonzero(_begins(rows))
        fallen = np.flatnonzero(epochs[1:] < epochs[:-1]) + 1
        for first in rows.take(pa.array(begins)).to_pylist():
            found.setdefault(first["key"], {}).setdefault(first["node"], None)
        for behind in np.setdiff1d(fallen, begins):
            before, one = rows.slice(int(behind) - 1, 2).to_pylist()
            _note(found, before, one)
        if len(rows):
            if last is not None:
                _compare(found, last, rows.slice(0, 1).to_pylist()[0])
            last = rows.slice(len(rows) - 1).to_pylist()[0]
    for key in sorted(found):
        yield key, counted(NAME, key, found[key].values())


def _begins(rows: pa.Table) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which rows are the first of their log."""
    begins = np.zeros(len(rows), dtype=np.bool_)
    begins[:1] = True
    for name in ("key", "node"):
        numbers = rows[name].combine_chunks().dictionary_encode().indices.to_numpy()
        begins[1:] |= numbers[1:] != numbers[:-1]
    return begins


def _compare(found: dict[str, dict[str, Proof | None]], before: _Row, one: _Row) -> None:
    """Compare the last record of a batch of rows with the first one of the next."""
    is_same = (before["key"], before["node"]) == (one["key"], one["node"])
    if is_same and one["leader_epoch"] < before["leader_epoch"]:
        _note(found, before, one)


def _note(found: dict[str, dict[str, Proof | None]], before: _Row, one: _Row) -> None:
    logs = found.setdefault(one["key"], {})
    if logs.get(one["node"]) is None:
        logs[one["node"]] = Proof.of(
            "the log of {node} has a record in leader epoch {epoch} at {offset}, and behind it, at "
            "{behind}, one in leader epoch {epoch_behind}",
            offsets={"offset": before["offset"], "behind": one["offset"]},
            node=one["node"],
            epoch=before["leader_epoch"],
            epoch_behind=one["leader_epoch"],
        )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=log_epochs_that_went_back,
        split=Split.RECORDS,
    ),
)
