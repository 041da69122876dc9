"""Two runs side by side: the first event of the control plane in which they part.

Each run is a handful of sequences: the frames of each link that are about the control plane, the
records of the metadata log, and the faults. An event is what was said, to whom, about what, and
what a rule did to it. Times, frame numbers, correlation and connection ids, broker epochs, producer
ids and ids drawn at random are left out. Fetches, Produces and other traffic whose number hangs
on time alone are not compared, and a heartbeat or its answer counts only where it differs from the
two events before it on its link.

Sequences are compared from their beginning. Of all that part, that whose first different event came
first, in either run, is the first difference.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.dataset as ds

from fencepost.report.notation import moment
from fencepost.report.serve.timeline.opened import OpenRun

LEFT_OUT: Final = (
    *("Fetch", "FetchSnapshot", "Produce", "Metadata", "ApiVersions", "FindCoordinator"),
    *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"),
    *("ListOffsets", "DescribeQuorum", "DescribeCluster", "PING", "ping"),
)
"""The APIs that are not compared."""
_FOLDED: Final = ("BrokerHeartbeat",)
_FRAME: Final = (
    *("api", "direction", "action", "error", "topic", "partition", "broker_id", "leader_id"),
    *("leader_epoch", "controller_epoch", "partition_epoch", "isr", "fenced", "shutting_down"),
    *("delete", "committed", "path", "znode_version"),
)
_RECORD: Final = (
    *("type", "topic", "partition", "replicas", "isr", "adding", "removing", "leader"),
    *("leader_epoch", "partition_epoch", "leader_recovery_state", "broker_id", "fenced"),
    *("in_controlled_shutdown", "name", "controller_epoch"),
)
_LOG: Final = "metadata log"
_FAULTS: Final = "faults"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedEvent:
    """One event of a sequence."""

    time_ns: int
    fields: Mapping[str, Any]

    @property
    def at(self) -> str:
        """Its time, for people."""
        return moment(self.time_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Where two runs part; `lane` is a link, the metadata log or the faults."""

    lane: str
    place: int
    """The number of events of the lane before it, which are the same in both."""
    a: ComparedEvent | None
    """None: the sequence of this run ends there."""
    b: ComparedEvent | None
    lane_count: int
    """The number of lanes that differ."""

    @property
    def names(self) -> tuple[tuple[str, Any, Any, bool], ...]:
        """The fields of both events, and whether they differ."""
        a, b = (one.fields if one else {} for one in (self.a, self.b))
        names = dict.fromkeys((*a, *b))
        return tuple((name, a.get(name), b.get(name), a.get(name) != b.get(name)) for name in names)

    def centre_ns(self, *, of_b: bool) -> int:
        """Return the time in one run at which it parts from the other."""
        mine, other = (self.b, self.a) if of_b else (self.a, self.b)
        told = mine or other
        return told.time_ns if told else 0


def first_difference(a: OpenRun, b: OpenRun) -> tuple[Difference | None, int]:
    """Return where the runs part, or None; and how many events of `a` were compared."""
    of_a, of_b = dict(_lanes(a)), dict(_lanes(b))
    found = []
    for lane in dict.fromkeys((*of_a, *of_b)):
        place = _parting(of_a.get(lane, ()), of_b.get(lane, ()))
        if place is not None:
            pair = [_at(one.get(lane, ()), place) for one in (of_a, of_b)]
            first = min(said.time_ns for said in pair if said)
            found.append((first, lane, place, pair))
    count = sum(map(len, of_a.values()))
    if not found:
        return None, count
    _, lane, place, (mine, theirs) = min(found, key=lambda one: one[:2])
    return Difference(lane=lane, place=place, a=mine, b=theirs, lane_count=len(found)), count


def _parting(a: Sequence[ComparedEvent], b: Sequence[ComparedEvent]) -> int | None:
    for place, (one, other) in enumerate(zip(a, b, strict=False)):
        if one.fields != other.fields:
            return place
    return None if len(a) == len(b) else min(len(a), len(b))


def _at(sequence: Sequence[ComparedEvent], place: int) -> ComparedEvent | None:
    return sequence[place] if place < len(sequence) else None


def _lanes(run: OpenRun) -> Iterator[tuple[str, Sequence[ComparedEvent]]]:
    if run.spans:
        yield (
            _FAULTS,
            [
                ComparedEvent(
                    time_ns=one.begin_ns, fields={"fault": one.kind, "targets": list(one.targets)}
                )
                for one in run.spans
            ],
        )
    records = list(_records(run))
    if records:
        yield _LOG, records
    links: dict[str, list[ComparedEvent]] = {}
    for row in _rows(run, "wire", (*_FRAME, "source", "target", "time_ns", "frame", "item")):
        asked = row["direction"] == "request"
        source, target = row["source"], row["target"]
        link = f"{source} → {target}" if asked else f"{target} → {source}"
        said = ComparedEvent(time_ns=row["time_ns"], fields=_stated(row, _FRAME))
        lane = links.setdefault(link, [])
        repeats = any(one.fields == said.fields for one in lane[-2:])
        if not (repeats and row["api"] in _FOLDED):
            lane.append(said)
    yield from links.items()


def _records(run: OpenRun) -> Iterator[ComparedEvent]:
    node = run.log_node()
    origin = run.manifest.origin_utc_ns
    columns = (*_RECORD, "node", "snapshot", "timestamp_ms")
    for row in _rows(run, "metadata_log", columns):
        if row["node"] == node and not row["snapshot"]:
            time_ns = max(0, row["timestamp_ms"] * 1_000_000 - origin)
            yield ComparedEvent(time_ns=time_ns, fields=_stated(row, _RECORD))


def _rows(run: OpenRun, table: str, columns: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    path = run.run.table_path(table)
    if not path.is_file():
        return
    rows = ds.dataset(path)
    chosen = None
    if "api" in columns:
        chosen = ~ds.field("api").isin(pa.array(LEFT_OUT)) & (ds.field("source") != "clients")
    there = [name for name in columns if name in rows.schema.names]
    for batch in rows.to_batches(columns=there, filter=chosen):
        yield from batch.to_pylist()


def _stated(row: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: row[name] for name in names if row.get(name) is not None}
