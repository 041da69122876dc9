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

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView, counted
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.replica_logs import group_begins
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    needs=("replica_records",),
)
NAME: Final = ENTRY.name
_LOG: Final = ("key", "node")
_COLUMNS: Final = (*_LOG, "offset", "leader_epoch")

_Row = Mapping[str, Any]


def log_epochs_that_went_back(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each log of a bucket. Reads `replica_records`, which has the order of the logs."""
    del seen
    found: dict[str, dict[str, Proof | None]] = {}
    last: pa.Table | None = None
    for batch in streamed(tables, "replica_records")(_COLUMNS):
        rows = pa.Table.from_batches([batch.filter(pc.field("leader_epoch") >= 0)])
        rows = rows if last is None else pa.concat_tables([last, rows])
        epochs = rows["leader_epoch"].to_numpy()
        begins = np.flatnonzero(group_begins(rows, _LOG))
        fallen = np.setdiff1d(np.flatnonzero(epochs[1:] < epochs[:-1]) + 1, begins)
        for first in rows.take(pa.array(begins)).to_pylist():
            found.setdefault(first["key"], {}).setdefault(first["node"], None)
        for place in fallen.tolist():
            before, behind = rows.slice(place - 1, 2).to_pylist()
            logs = found[behind["key"]]
            logs[behind["node"]] = logs[behind["node"]] or _proof(before, behind)
        last = rows.slice(max(0, len(rows) - 1))
    for key in sorted(found):
        yield key, counted(NAME, key, found[key].values())


def _proof(before: _Row, behind: _Row) -> Proof:
    return Proof.of(
        "the log of {node} has a record in leader epoch {epoch} at {offset}, and behind it, at "
        "{behind}, one in leader epoch {epoch_behind}",
        offsets={"offset": before["offset"], "behind": behind["offset"]},
        node=behind["node"],
        epoch=before["leader_epoch"],
        epoch_behind=behind["leader_epoch"],
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=log_epochs_that_went_back,
        split=Split.RECORDS,
    ),
)
