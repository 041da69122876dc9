"""C25 metadata-watermark-ahead: A controller told a high watermark that was not one yet.

The answer to a Fetch of the metadata log named a high watermark, and fewer voters than a majority
needs beside its leader had fetched from there or beyond by then; or the log of record has a record
below it that was appended only later.

The answer to a Fetch of the metadata log names its high watermark: a majority of the voters has
what lies below it, so that no election undoes it, and brokers apply it. Every such Fetch is on the
tape, and names where the log of the one that fetches ends.

From which leader the voters had fetched does not count, since a later leader may tell what an
earlier one had committed. A quorum whose voters change is not judged by Fetches. The times of the
log are those of the controllers' clocks, widened by what these may differ from the proxy's; an
answer that is younger than the last record is not judged by them.

A late answer tells less than could have been told, and is not accused.

Meaning: Brokers apply metadata that an election may undo.
Case: an answer that told the high watermark of the metadata log
Source: KIP-595
"""

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.exchanges import BY_PROXY
from fencepost.checkers.metadata.log_of_record import majority_of
from fencepost.checkers.metadata.view import METADATA, MetadataView, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.QUORUM,
    rests_on=("whole-tape",),
    needs=("metadata_log", "wire"),
)
NAME: Final = ENTRY.name
_FETCH: Final = "Fetch"
_METADATA_TOPIC: Final = "__cluster_metadata"
_VOTERS: Final = "VotersRecord"
_COLUMNS: Final = (
    *("frame", "time_ns", "forwarded_ns", "source", "target", "direction", "api", "action"),
    *("error", "topic", "fetch_offset", "high_watermark"),
)
_ANY: Final = np.iinfo(np.int64).max
"""In the place of an offset: nothing is known that it would have to lie below."""


def metadata_watermarks_ahead(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each answer that tells one, all in one. Reads `metadata_log` and `wire`."""
    told, fetched = _exchanged(streamed(tables, "wire"), seen)
    high_watermark = told["high_watermark"].to_numpy()
    time_ns = told["time_ns"].to_numpy()
    limits = [_fetched_by(time_ns, fetched, seen)]
    if not seen.log.doubt:
        limits.append(_appended_by(time_ns, seen))
    limit = np.minimum.reduce(limits)
    # A frame may be on the tape twice.
    _, once = np.unique(told["frame"].to_numpy(), return_index=True)
    ahead = once[high_watermark[once] > limit[once]]
    proofs = [
        _of_metadata(row, int(limit[place]), is_fetched=limits[0][place] == limit[place])
        for place, row in zip(ahead.tolist(), told.take(pa.array(ahead)).to_pylist(), strict=True)
    ]
    if len(once):
        yield METADATA, spelled(NAME, METADATA, proofs, cases=len(once))


def _exchanged(wire: Source, seen: MetadataView) -> tuple[pa.Table, pa.Table]:
    """Return the answers that tell one, and the Fetches of voters that were passed on."""
    voters = pa.array(seen.facts.controllers, pa.string())
    told, fetched = [], []
    for batch in wire(_COLUMNS):
        mine = batch.filter(
            pc.and_(
                pc.equal(batch.column("api"), _FETCH),
                pc.fill_null(pc.equal(batch.column("topic"), _METADATA_TOPIC), fill_value=False),
            )
        )
        is_request = pc.equal(mine.column("direction"), "request")
        answers = pc.and_(
            pc.equal(mine.column("error"), "NONE"),
            pc.not_equal(mine.column("action"), BY_PROXY),
        )
        tells = pc.greater_equal(mine.column("high_watermark"), 0)
        told.append(mine.filter(pc.and_not(pc.and_(answers, tells), is_request)))
        passed = pc.and_(is_request, pc.is_valid(mine.column("forwarded_ns")))
        by_voter = pc.is_in(mine.column("source"), voters)
        fetched.append(mine.filter(pc.and_(passed, by_voter)))
    return pa.Table.from_batches(told), pa.Table.from_batches(fetched)


def _fetched_by(
    time_ns: NDArray[np.int64], fetched: pa.Table, seen: MetadataView
) -> NDArray[np.int64]:
    """Return the highest offset that a majority can have had by each time; `_ANY`: any."""
    voters = seen.facts.controllers
    beside = majority_of(seen.facts) - 1
    changes = len({offset for offset, _ in seen.details_of(_VOTERS)}) > 1
    if not beside or changes:
        return np.full(len(time_ns), _ANY)
    ends = np.zeros((len(voters), len(time_ns)), dtype=np.int64)
    for own, voter in zip(ends, voters, strict=True):
        mine = fetched.filter(pc.equal(fetched["source"], voter)).sort_by("forwarded_ns")
        reached_ns = mine["forwarded_ns"].to_numpy()
        # One that could not be decoded may have named any offset.
        offset = pc.fill_null(mine["fetch_offset"], _ANY).to_numpy()
        highest = np.maximum.accumulate(np.insert(offset, 0, 0))
        own[:] = highest[np.searchsorted(reached_ns, time_ns, side="right")]
    ends.sort(axis=0)
    limit: NDArray[np.int64] = ends[-beside]
    return limit


def _appended_by(time_ns: NDArray[np.int64], seen: MetadataView) -> NDArray[np.int64]:
    """Return the highest offset that the log of record can have had by each time; `_ANY`: any."""
    rows = seen.log.rows.filter(pc.invert(seen.log.rows["snapshot"]))
    offset = rows["metadata_offset"].to_numpy()
    stamps, place = np.unique(rows["timestamp_ms"].to_numpy(), return_inverse=True)
    earliest = np.array([seen.facts.earliest_ns(one) for one in stamps.tolist()], np.int64)[place]
    # Each record is appended after those before it.
    order = np.argsort(offset, kind="stable")
    since_ns = np.maximum.accumulate(earliest[order])
    offset = np.append(offset[order], seen.log.end_offset)
    limit = offset[np.searchsorted(since_ns, time_ns, side="right")]
    return np.where(time_ns <= seen.known_until_ns, limit, _ANY)


def _of_metadata(row: dict[str, Any], limit: int, *, is_fetched: bool) -> Proof:
    why = (
        "no majority of the voters can have had more than {limit} by then: the others had fetched "
        "from no higher offset"
        if is_fetched
        else "the record at {limit} was appended only later"
    )
    return Proof.of(
        f"{{target}} told {{source}} at {{told}} (frame {{frame}}) that the high watermark of the "
        f"metadata log is {{high_watermark}}, and {why}",
        metadata_offsets={"high_watermark": row["high_watermark"], "limit": limit},
        frames={"frame": row["frame"]},
        times={"told": row["time_ns"]},
        sources=dict.fromkeys(("high_watermark", "told"), "frame"),
        target=row["target"],
        source=row["source"],
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=metadata_watermarks_ahead,
        apis=(_FETCH,),
    ),
)
