"""Frames of the tape, as a picture needs them: who said what to whom, and what became of it.

A run has millions of heartbeats and fetches, and a reader wants the few frames that decided
something: those that a rule did something to, and those of the APIs by which nodes decide. Only
these are read whole; all others are counted.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from fencepost.checkers.rows import places_in_runs
from fencepost.checkers.sources import rows_of
from fencepost.history.schema import TABLES, with_later_columns

_ORDER: Final = [("frame", "ascending"), ("item", "ascending")]

PASSED: Final = "forwarded"
"""The action of a frame that nothing was done to."""

DECIDING: Final = frozenset(
    (
        "AddRaftVoter",
        "AlterPartition",
        "AlterPartitionReassignments",
        "AssignReplicasToDirs",
        "BeginQuorumEpoch",
        "BrokerRegistration",
        "ControlledShutdown",
        "CreateTopics",
        "DeleteTopics",
        "ElectLeaders",
        "EndQuorumEpoch",
        "EndTxn",
        "InitProducerId",
        "LeaderAndIsr",
        "RemoveRaftVoter",
        "StopReplica",
        "UnregisterBroker",
        "UpdateFeatures",
        "Vote",
        "WriteTxnMarkers",
        # The packets by which a leader of ZooKeeper takes a follower in.
        *("FOLLOWERINFO", "OBSERVERINFO", "LEADERINFO", "ACKEPOCH", "DIFF", "TRUNC", "SNAP"),
        *("NEWLEADER", "UPTODATE"),
    )
)
"""The APIs that are drawn though nothing was done to them; of others only what was disturbed."""

_ANSWERING_NOTHING: Final = frozenset(("Notification", "WatcherEvent"))
"""Messages of ZooKeeper's that no request asks for. So are the packets of its quorums, which are
named in capitals."""

_ITEMS_MAX: Final = 2
"""The items of a frame that are read whole: one may have thousands."""
_BATCH_ROWS: Final = 1 << 14

DISTURBING: Final = frozenset(
    (
        *("held", "released", "undeliverable", "dropped", "answered", "cut"),
        *("duplicated", "reordered"),
    )
)
"""The actions that change an exchange. Mere delays and rewrites are not among them: they
mostly touch many frames."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownFrame:
    """One frame. Times are ns of the run."""

    number: int
    connection: int
    correlation_id: int
    source: str
    """The party that opened the connection."""
    target: str
    is_request: bool
    time_ns: int
    forwarded_ns: int | None
    action: str
    rule: str | None
    api: str
    api_version: int
    items: tuple[Mapping[str, Any], ...]
    """The first `_ITEMS_MAX` rows of `wire` of the frame, without nulls; those about the topics of
    the run come before those about Kafka's own."""
    item_count: int
    errors: tuple[str, ...]
    """The errors that all of its items name, but NONE."""

    @property
    def sender(self) -> str:
        """The party that sent it."""
        return self.source if self.is_request else self.target

    @property
    def receiver(self) -> str:
        """The party that it was for."""
        return self.target if self.is_request else self.source

    @property
    def is_answer(self) -> bool:
        """True if a request asked for it."""
        spontaneous = self.api.isupper() or self.api in _ANSWERING_NOTHING
        return not (self.is_request or spontaneous)

    @property
    def touched(self) -> bool:
        """True if a rule acted on it; a rule that merely watches does not."""
        return self.action != PASSED

    @property
    def disturbed(self) -> bool:
        """True if the rule changed the exchange, and not merely its time or a version."""
        return self.action in DISTURBING

    @property
    def exchange(self) -> tuple[int, int]:
        """The connection and correlation id, which a request and its response share."""
        return self.connection, self.correlation_id


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameCounts:
    """The counts of the whole tape."""

    frame_count: int
    deciding_count: int
    """The number of frames of the APIs of `DECIDING`."""
    disturbed_count: int
    disturbed_from_ns: int | None
    """The time when the first frame was sent that was held, dropped or the like; None: none was."""
    disturbed_until_ns: int
    """The time when the last of the first `disturbed_max` of these was passed on."""


NO_FRAMES: Final = FrameCounts(
    frame_count=0,
    deciding_count=0,
    disturbed_count=0,
    disturbed_from_ns=None,
    disturbed_until_ns=0,
)
"""The counts of a run without a tape."""


def frame_counts(files: Sequence[Path], *, disturbed_max: int) -> FrameCounts:
    """Count the tape in one pass, in bounded memory.

    Of disturbed frames, `disturbed_max` are examined.
    """
    frames = deciding = disturbed = 0
    hull: list[tuple[int, int]] = []
    columns = ["item", "time_ns", "forwarded_ns", "action", "api"]
    chosen = ds.field("item") == 0
    for batch in _dataset(files).to_batches(columns=columns, filter=chosen):
        frames += len(batch)
        deciding += pc.sum(_is_in(batch, "api", DECIDING)).as_py() or 0
        disturbed += pc.sum(_is_in(batch, "action", DISTURBING)).as_py() or 0
        broken = batch.filter(_is_in(batch, "action", DISTURBING))
        rows = broken.slice(0, disturbed_max - len(hull)).to_pylist()
        hull.extend((row["time_ns"], row["forwarded_ns"] or row["time_ns"]) for row in rows)
    return FrameCounts(
        frame_count=frames,
        deciding_count=deciding,
        disturbed_count=disturbed,
        disturbed_from_ns=min((begin for begin, _ in hull), default=None),
        disturbed_until_ns=max((end for _, end in hull), default=0),
    )


def frames_between(
    files: Sequence[Path],
    *,
    from_ns: int,
    to_ns: int,
    proven: Collection[int] = (),
    topics: Mapping[str, str] = MappingProxyType({}),
) -> tuple[tuple[ShownFrame, ...], Counter[str]]:
    """Return the frames to draw of a window, in order of arrival, and by API how many others.

    A frame is in the window if it came or went in it. Of APIs that are merely counted there is what
    was disturbed, with its answers, the heartbeats that were refused, and the frames of `proven`.
    `topics` has names by id, for frames that state the id alone.
    """
    sent, passed = ds.field("time_ns"), ds.field("forwarded_ns")
    inside = ((sent >= from_ns) & (sent <= to_ns)) | ((passed >= from_ns) & (passed <= to_ns))
    disturbed = ds.field("action").isin(sorted(DISTURBING))
    deciding = ds.field("api").isin(sorted(DECIDING))
    exchanges = _exchanges(files, inside & disturbed)
    answered = ds.field("correlation_id").isin([number for _, number in exchanges])
    refused = (ds.field("api") == "BrokerHeartbeat") & (ds.field("error") != "NONE")
    named = ds.field("frame").isin(sorted(proven))
    wanted = disturbed | deciding | answered | refused | named
    frames = [
        frame
        for frame in _frames(_chosen(files, inside & wanted, topics), topics)
        if frame.api in DECIDING
        or frame.number in proven
        or frame.exchange in exchanges
        or (frame.api == "BrokerHeartbeat" and frame.errors)
    ]
    everything = _dataset(files).to_table(columns=["api"], filter=inside & (ds.field("item") == 0))
    counts = Counter(
        {row["values"]: row["counts"] for row in pc.value_counts(everything["api"]).to_pylist()}
    )
    counts.subtract(frame.api for frame in frames)
    return tuple(frames), +counts


def frame_ends(files: Sequence[Path], numbers: Collection[int]) -> Mapping[int, int]:
    """Return, by number, the time when each frame was passed on; if it never was, arrived."""
    if not numbers:
        return {}
    columns = ["frame", "time_ns", "forwarded_ns"]
    chosen = ds.field("frame").isin(sorted(numbers))
    rows = _dataset(files).to_table(columns=columns, filter=chosen).to_pylist()
    return {row["frame"]: row["forwarded_ns"] or row["time_ns"] for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Chosen:
    """The rows, counts and errors of some frames."""

    first: pa.Table
    """The first `_ITEMS_MAX` of each frame, in order; WIRE."""
    counts: pa.Table
    """A row a frame: `frame`, `count`, of its items."""
    errors: pa.Table
    """A row a frame and error: `frame`, `error`, `item`, the first one that names it."""


def _chosen(files: Sequence[Path], chosen: ds.Expression, topics: Mapping[str, str]) -> _Chosen:
    """Return the rows that are chosen.

    Read batch by batch: a scan of all columns holds several groups of a million rows.
    """
    internal = pa.array([one for one, name in topics.items() if _is_internal(name)], pa.string())
    parts = [_kept(TABLES["wire"].empty_table(), internal)]
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
                whole = with_later_columns(pa.Table.from_batches([batch]), "wire")
                parts.append(_kept(whole.filter(chosen), internal))
    counts = pa.concat_tables(part.counts for part in parts)
    errors = pa.concat_tables(part.errors for part in parts)
    return _Chosen(
        first=_first_items(pa.concat_tables(part.first for part in parts), internal),
        counts=_grouped(counts, ["frame"], "count", "sum"),
        errors=_grouped(errors, ["frame", "error"], "item", "min").sort_by(_ORDER),
    )


def _kept(rows: pa.Table, internal: pa.Array) -> _Chosen:
    named = rows.filter(pc.not_equal(rows["error"], "NONE"))
    return _Chosen(
        first=_first_items(rows, internal),
        counts=_grouped(rows, ["frame"], "item", "count").rename_columns(["frame", "count"]),
        errors=_grouped(named, ["frame", "error"], "item", "min"),
    )


def _is_internal(topic: str) -> bool:
    return topic.startswith("__")


def _first_items(rows: pa.Table, internal: pa.Array) -> pa.Table:
    """Return of each frame the first items; those about internal topics, by name or id, last."""
    by_name = pc.fill_null(pc.starts_with(rows["topic"], "__"), False)
    by_id = pc.and_(pc.is_null(rows["topic"]), pc.is_in(rows["topic_id"], internal))
    last = pc.or_(by_name, by_id).to_numpy()
    frame, item = rows["frame"].to_numpy(), rows["item"].to_numpy()
    order = np.lexsort((item, last, frame))
    return rows.take(pa.array(order[places_in_runs(frame[order]) < _ITEMS_MAX]))


def _grouped(rows: pa.Table, by: list[str], column: str, how: str) -> pa.Table:
    grouped = rows.group_by(by).aggregate([(column, how)])
    return grouped.select([*by, f"{column}_{how}"]).rename_columns([*by, column])


def _is_in(batch: pa.RecordBatch, column: str, words: Collection[str]) -> pa.Array:
    return pc.is_in(batch.column(column), value_set=pa.array(sorted(words)))


def _exchanges(files: Sequence[Path], chosen: ds.Expression) -> frozenset[tuple[int, int]]:
    columns = ["connection", "correlation_id"]
    rows = _dataset(files).to_table(columns=columns, filter=chosen).to_pylist()
    return frozenset((row["connection"], row["correlation_id"]) for row in rows)


def _frames(chosen: _Chosen, topics: Mapping[str, str]) -> Iterable[ShownFrame]:
    columns = chosen.counts["frame"].to_pylist(), chosen.counts["count"].to_pylist()
    counts = dict(zip(*columns, strict=True))
    errors: dict[int, list[str]] = {}
    for row in chosen.errors.to_pylist():
        errors.setdefault(row["frame"], []).append(row["error"])
    found: dict[int, list[dict[str, Any]]] = {}
    for row in rows_of(chosen.first):
        kept = {name: value for name, value in row.items() if value is not None}
        if "topic" not in kept and kept.get("topic_id") in topics:
            kept["topic"] = topics[kept["topic_id"]]
        found.setdefault(row["frame"], []).append(kept)
    for number, items in found.items():
        first = items[0]
        yield ShownFrame(
            number=number,
            connection=first["connection"],
            correlation_id=first["correlation_id"],
            source=first["source"],
            target=first["target"],
            is_request=first["direction"] == "request",
            time_ns=first["time_ns"],
            forwarded_ns=first.get("forwarded_ns"),
            action=first["action"],
            rule=first.get("rule"),
            api=first["api"],
            api_version=first["api_version"],
            items=tuple(items),
            item_count=counts[number],
            errors=tuple(errors.get(number, ())),
        )


def _dataset(files: Sequence[Path]) -> ds.Dataset:
    # With the schema that is known here, a column that is missing is null and not an error.
    return ds.dataset([str(path) for path in files], schema=TABLES["wire"], format="parquet")
