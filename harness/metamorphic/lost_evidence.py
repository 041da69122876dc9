"""Evidence that is lost: what was there is not told any more, and nothing else is."""

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.history.schema import TABLES

_FRAMES_SHARE: Final = 0.01
_REQUESTS_SHARE: Final = 0.3
_ACKNOWLEDGEMENTS_SHARE: Final = 0.05
_KINDS: Final = (
    "BrokerHeartbeat",
    "BrokerRegistration",
    "MetadataHeartbeat",
    "AlterPartition",
    "IsrChange",
    "Fetch",
    "LeaderAndIsr",
    "UpdateMetadata",
)
_BEGINS: Final = ("call_ns", "time_ns", "begin_ns", "asked_ns")
_ENDS: Final = ("return_ns", "end_ns", "forwarded_ns", "effect_ns", "end_call_ns")

_IsKept = Callable[[dict[str, Any]], bool]


def frames_lost(run: CopiedRun, draw: Random) -> bool:
    """Take one frame in a hundred off the tape."""
    lost: dict[int, bool] = {}
    return _kept(
        run,
        "wire",
        ("frame",),
        lambda row: not lost.setdefault(row["frame"], draw.random() < _FRAMES_SHARE),
    )


def requests_lost(run: CopiedRun, draw: Random) -> bool:
    """Take three in ten requests of a drawn kind off the tape."""
    if not run.has("wire"):
        return False
    there = set(run.table("wire")["api"].unique().to_pylist())
    kind = draw.choice([one for one in _KINDS if one in there] or ["none"])
    lost: dict[int, bool] = {}

    def is_kept(row: dict[str, Any]) -> bool:
        if row["api"] != kind or row["direction"] != "request":
            return True
        return not lost.setdefault(row["frame"], draw.random() < _REQUESTS_SHARE)

    return _kept(run, "wire", ("frame", "api", "direction"), is_kept)


def head_of_tape_lost(run: CopiedRun, draw: Random) -> bool:
    """Take the first tenth of the tape's time away."""
    del draw
    return _span_lost(run, 0.0, 0.1)


def tail_of_tape_lost(run: CopiedRun, draw: Random) -> bool:
    """Take the last tenth of the tape's time away."""
    del draw
    return _span_lost(run, 0.9, 1.0)


def hole_in_tape(run: CopiedRun, draw: Random) -> bool:
    """Take a tenth of the tape's time away, somewhere between both ends."""
    begin = draw.uniform(0.1, 0.8)
    return _span_lost(run, begin, begin + 0.1)


def _span_lost(run: CopiedRun, begin: float, end: float) -> bool:
    if not run.has("wire"):
        return False
    span = pc.min_max(run.table("wire")["time_ns"]).as_py()
    if span["min"] is None:
        return False
    first_ns, length_ns = span["min"], span["max"] - span["min"]
    begin_ns, end_ns = (first_ns + round(length_ns * share) for share in (begin, end))
    return _kept(run, "wire", ("time_ns",), lambda row: not begin_ns <= row["time_ns"] <= end_ns)


def broker_off_tape(run: CopiedRun, draw: Random) -> bool:
    """Take the frames from and to a drawn broker off the tape."""
    brokers = sorted(node for node in run.manifest.node_ids if node.startswith("broker"))
    if not brokers:
        return False
    off = draw.choice(brokers)
    return _kept(
        run, "wire", ("source", "target"), lambda row: off not in (row["source"], row["target"])
    )


def describes_lost(run: CopiedRun, draw: Random) -> bool:
    """Take one read of metadata in a hundred away, or one at least."""
    if not run.has("describes"):
        return False
    reads = sorted(set(run.table("describes")["read"].to_pylist()))
    lost = set(draw.sample(reads, -(-len(reads) // 100)))
    return _kept(run, "describes", ("read",), lambda row: row["read"] not in lost)


def acknowledgements_lost(run: CopiedRun, draw: Random) -> bool:
    """Let one acknowledged send in twenty have ended unknown to its client."""
    if not run.has("records"):
        return False
    records = run.table("records")
    is_acknowledged = pc.and_(pc.equal(records["f"], "send"), pc.equal(records["outcome"], "ok"))
    known = sorted(set(records.filter(is_acknowledged)["operation"].to_pylist()))
    lost = set(draw.sample(known, len(known) // round(1 / _ACKNOWLEDGEMENTS_SHARE)))

    def unknown(rows: pa.Table, operation: str, unacknowledged: Mapping[str, Any]) -> pa.Table:
        told = rows.to_pylist()
        for row in told:
            if row[operation] in lost:
                row.update({"outcome": "info"}, **unacknowledged)
        return pa.Table.from_pylist(told, schema=rows.schema)

    run.change("records", lambda rows: unknown(rows, "operation", {"offset": None}))
    return run.change(
        "operations", lambda rows: unknown(rows, "index", {"error": "_MSG_TIMED_OUT"})
    )


def metadata_writes_lost(run: CopiedRun, draw: Random) -> bool:
    """Take every second write of metadata away, and number the others anew."""
    first = draw.randrange(2)

    def halved(rows: pa.Table) -> pa.Table:
        left = rows.take(pa.array(range(first, len(rows), 2), pa.int64()))
        return left.set_column(
            0, left.schema.field("index"), pa.array(range(len(left)), pa.int64())
        )

    return run.has("metadata_writes") and run.change("metadata_writes", halved)


def records_lost(run: CopiedRun, draw: Random) -> bool:
    """Take one record in a hundred, as clients told them, away."""
    return _kept(run, "records", (), lambda _: draw.random() >= _FRAMES_SHARE)


def bucket_lost(run: CopiedRun, draw: Random) -> bool:
    """Empty one of the files that hold records of the replicas' logs."""
    if not run.has("replica_records"):
        return False
    keys = sorted(set(run.table("replica_records")["key"].to_pylist()))
    if not keys:
        return False
    lost = draw.choice(keys)
    return run.change(
        "replica_records",
        lambda rows: rows.slice(0, 0) if lost in rows["key"].to_pylist() else rows,
    )


def cut_short(run: CopiedRun, draw: Random) -> bool:
    """Let the recording have ended at a drawn moment: what was under way then stayed open."""
    end_ns = run.manifest.end_ns
    if end_ns is None:
        return False
    cut_ns = round(end_ns * draw.uniform(0.2, 0.95))
    for name in run.tables:
        columns = TABLES[name].names
        begins = next((one for one in _BEGINS if one in columns), None)
        if begins is not None:
            run.change(name, partial(_open_at, begins=begins, cut_ns=cut_ns))
    run.state(end_ns=None, healed_ns=None)
    return True


def _open_at(rows: pa.Table, *, begins: str, cut_ns: int) -> pa.Table:
    left = rows.filter(pc.less_equal(rows[begins], cut_ns))
    told = left.to_pylist()
    for row in told:
        for end in _ENDS:
            if row.get(end) is not None and row[end] > cut_ns:
                if left.schema.field(end).nullable:
                    row[end] = None
                if end == "return_ns" and "outcome" in row:
                    row.update({"outcome": "info"}, **({"error": None} if "error" in row else {}))
    return pa.Table.from_pylist(told, schema=rows.schema)


def _kept(run: CopiedRun, name: str, columns: tuple[str, ...], is_kept: _IsKept) -> bool:
    """Keep the rows of a table for which this holds; return whether any is gone."""

    def kept(rows: pa.Table) -> pa.Table:
        read = rows.select(list(columns)).to_pylist() if columns else [{}] * len(rows)
        return rows.filter(pa.array([is_kept(row) for row in read], pa.bool_()))

    return run.has(name) and run.change(name, kept)
