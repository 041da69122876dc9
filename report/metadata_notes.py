"""The decisions of the cluster in its metadata log, as notes: joins, elections, registrations.

A record states what is new; a reader wants to know what it was before. So the log is followed from
its beginning, and each note names both. Records of one batch that say the same of several
partitions are one note.

The log's times are the active controller's wall clock in ms; the manifest ties it to the run's
clock. That makes them exact enough to be read beside frames, and no finer than a millisecond.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.sources import Source, rows_of
from fencepost.history.manifest import Manifest

_IDENTITY: Final = ("type", "snapshot", "metadata_offset", "digest")
_COLUMNS: Final = (
    *(*_IDENTITY, "node", "timestamp_ms", "controller_epoch", "topic", "topic_id", "partition"),
    *("leader", "leader_recovery_state", "isr", "broker_id", "broker_epoch", "fenced"),
    *("in_controlled_shutdown", "detail"),
)
"""Of METADATA_LOG, what a note is made of."""
_NAMED_MAX: Final = 3
_NS_A_MS: Final = 1_000_000


class NoteKind(StrEnum):
    """The subject of a note."""

    ISR = "isr"
    LEADER = "leader"
    REGISTRATION = "registration"
    FENCING = "fencing"
    QUORUM = "quorum"
    TOPIC = "topic"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionNote:
    """One decision, at its time in the run."""

    time_ns: int
    metadata_offset: int
    kind: NoteKind
    words: str
    details: tuple[str, ...]
    about: tuple[str, ...] = ()
    """The partitions, where records of several say the same."""
    by: str | None = None
    """The controller that decided it."""

    @property
    def text(self) -> str:
        """The text of the note: `t-0, t-1: ISR [1, 2] → [1]`."""
        named = ", ".join(self.about[:_NAMED_MAX])
        more = len(self.about) - _NAMED_MAX
        named += f" and {more} more" if more > 0 else ""
        return f"{named}: {self.words}" if named else self.words


def notes_of(metadata_log: Source, manifest: Manifest) -> Iterator[DecisionNote]:
    """Yield every decision of METADATA_LOG, in its order.

    None if the manifest does not tie the clocks.
    """
    if not manifest.origin_utc_ns:
        return
    log = _Log(nodes={number: node for node, number in manifest.node_ids.items()})
    alike: list[DecisionNote] = []
    for row, only_on in _distinct(metadata_log):
        time_ns = row["timestamp_ms"] * _NS_A_MS - manifest.origin_utc_ns
        for note in log.notes(row, time_ns):
            if row["snapshot"]:
                continue
            said = f"{note.words} (only on {only_on})" if only_on else note.words
            told = replace(note, words=said)
            if alike and not _is_one(alike[0], told):
                yield _joined(alike)
                alike = []
            alike.append(told)
    if alike:
        yield _joined(alike)


def topic_names(metadata_log: Source) -> Mapping[str, str]:
    """Return the name of each topic that METADATA_LOG created, by its id."""
    names: dict[str, str] = {}
    for batch in metadata_log(["type", "topic_id", "topic"]):
        created = batch.filter(pc.equal(batch.column("type"), "TopicRecord"))
        names |= {row["topic_id"]: row["topic"] for row in created.to_pylist() if row["topic"]}
    return names


def _is_one(last: DecisionNote, note: DecisionNote) -> bool:
    """Return whether both say the same, of partitions, at one time."""
    same = (last.time_ns, last.words) == (note.time_ns, note.words)
    return bool(note.about and last.about and same)


def _joined(alike: Sequence[DecisionNote]) -> DecisionNote:
    return replace(
        alike[0],
        about=tuple(key for note in alike for key in note.about),
        details=tuple(line for note in alike for line in note.details),
    )


def _distinct(log: Source) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield each record once, by offset; and, if nodes disagree about an offset, say whose it is.

    Every node has nearly all of them: only one row of each is read whole.
    """
    records = _records(log)
    logged = records.filter(pc.invert(records["snapshot"]))["metadata_offset"].value_counts()
    disputed = logged.filter(pc.greater(logged.field("counts"), 1)).field("values")
    rows, holders = _rows(log, records["row"], disputed)
    for row in rows:
        at = row["metadata_offset"], row["digest"]
        yield row, "" if row["snapshot"] else ", ".join(sorted(holders.get(at, ())))


def _records(log: Source) -> pa.Table:
    """Return where the first row of each record is, in order.

    Columns `snapshot`, `metadata_offset`, `digest` and `row`.
    """
    # A later snapshot would tell the state before the records that led to it.
    oldest = min(_snapshot_offsets(log), default=None)
    records, count = [], 0
    for batch in log(_IDENTITY):
        row = np.arange(count, count + batch.num_rows)
        count += batch.num_rows
        numbered = pa.Table.from_batches([batch]).append_column("row", pa.array(row, pa.int64()))
        of_snapshot = pc.and_(
            batch.column("snapshot"), pc.not_equal(batch.column("metadata_offset"), oldest or 0)
        )
        kept = pc.and_(_is_read(batch), pc.invert(of_snapshot))
        records.append(_first_rows(numbered.filter(kept)))
    return _first_rows(pa.concat_tables(records)).sort_by(
        [("snapshot", "descending"), ("metadata_offset", "ascending"), ("row", "ascending")]
    )


def _snapshot_offsets(log: Source) -> Iterator[int]:
    for batch in log(["snapshot", "metadata_offset", "type"]):
        told = batch.filter(pc.and_(batch.column("snapshot"), _is_read(batch)))
        if told.num_rows:
            yield pc.min(told.column("metadata_offset")).as_py()


def _first_rows(rows: pa.Table) -> pa.Table:
    # Records of a snapshot share its offset, and are told apart by their digests alone.
    by = ["snapshot", "metadata_offset", "digest"]
    first = rows.group_by(by).aggregate([("row", "min")])
    return first.select([*by, "row_min"]).rename_columns([*by, "row"])


def _rows(
    log: Source, wanted: pa.Array, disputed: pa.Array
) -> tuple[Iterator[Mapping[str, Any]], Mapping[tuple[int, str], set[str]]]:
    """Return these rows, in their order; and the nodes that have each record that is disputed."""
    numbers, parts, count = np.sort(wanted.to_numpy()), [], 0
    holders: dict[tuple[int, str], set[str]] = {}
    for batch in log(_COLUMNS):
        first, end = np.searchsorted(numbers, (count, count + batch.num_rows))
        parts.append(batch.take(pa.array(numbers[first:end] - count)))
        count += batch.num_rows
        split = pc.and_(
            pc.is_in(batch.column("metadata_offset"), value_set=disputed),
            pc.and_(_is_read(batch), pc.invert(batch.column("snapshot"))),
        )
        for row in batch.filter(split).to_pylist():
            holders.setdefault((row["metadata_offset"], row["digest"]), set()).add(row["node"])
    place = np.searchsorted(numbers, wanted.to_numpy())
    return rows_of(pa.Table.from_batches(parts).take(pa.array(place))), holders


def _is_read(batch: pa.RecordBatch) -> pa.Array:
    return pc.is_in(batch.column("type"), value_set=pa.array(list(_READERS)))


@dataclass(slots=True, kw_only=True)
class _Log:
    """The state that the log has led to."""

    nodes: Mapping[int, str]
    topics: dict[str, str] = field(default_factory=dict)
    isr: dict[str, list[int]] = field(default_factory=dict)
    leader: dict[str, int] = field(default_factory=dict)
    epochs: dict[int, int] = field(default_factory=dict)
    active: str | None = None

    def notes(self, row: Mapping[str, Any], time_ns: int) -> Iterable[DecisionNote]:
        """Yield the notes of one record."""
        for kind, words, about in _READERS[row["type"]](self, row):
            yield DecisionNote(
                time_ns=time_ns,
                metadata_offset=row["metadata_offset"],
                kind=kind,
                words=words,
                details=tuple(_details(row)),
                about=(about,) if about else (),
                by=self.active,
            )

    def key(self, row: Mapping[str, Any]) -> str:
        """Return `t-0`; by its id, if the log never named the topic."""
        topic = row["topic"] or self.topics.get(row["topic_id"], row["topic_id"])
        return f"{topic}-{row['partition']}"


_Said = Iterator[tuple[NoteKind, str, str]]


def _details(row: Mapping[str, Any]) -> Iterator[str]:
    offset = f"metadata offset {row['metadata_offset']}"
    yield f"{row['type']} at {offset}, controller epoch {row['controller_epoch']}"
    if row["detail"]:
        yield str(row["detail"])


def _topic(log: _Log, row: Mapping[str, Any]) -> _Said:
    log.topics[row["topic_id"]] = row["topic"]
    yield NoteKind.TOPIC, f"topic {row['topic']} is created", ""


def _removed_topic(log: _Log, row: Mapping[str, Any]) -> _Said:
    name = row["topic"] or log.topics.get(row["topic_id"], row["topic_id"])
    yield NoteKind.TOPIC, f"topic {name} is deleted", ""


def _partition(log: _Log, row: Mapping[str, Any]) -> _Said:
    key = log.key(row)
    log.isr[key], log.leader[key] = row["isr"], row["leader"]
    if not key.startswith("__"):
        yield NoteKind.TOPIC, f"leader {_who(row['leader'])}, ISR {row['isr']}", key


def _partition_change(log: _Log, row: Mapping[str, Any]) -> _Said:
    key = log.key(row)
    isr, leader = row["isr"], row["leader"]
    before, led = log.isr.get(key), log.leader.get(key)
    if key.startswith("__"):
        return
    changes = []
    kind = NoteKind.ISR
    if leader is not None and leader != led:
        unclean = " uncleanly" if row["leader_recovery_state"] == 1 else ""
        changes.append(f"leader {_who(led)} → {_who(leader)}{unclean}")
        log.leader[key], kind = leader, NoteKind.LEADER
    if isr is not None and isr != before:
        changes.append(f"ISR {'?' if before is None else before} → {isr}")
        log.isr[key] = isr
    if changes:
        yield kind, ", ".join(changes), key


def _registration(log: _Log, row: Mapping[str, Any]) -> _Said:
    log.epochs[row["broker_id"]] = row["broker_epoch"]
    yield (
        NoteKind.REGISTRATION,
        f"broker {row['broker_id']} registers, broker epoch {row['broker_epoch']}",
        "",
    )


def _registration_change(_: _Log, row: Mapping[str, Any]) -> _Said:
    broker = f"broker {row['broker_id']}"
    if row["fenced"] is not None:
        yield NoteKind.FENCING, f"{broker} is {'fenced' if row['fenced'] else 'unfenced'}", ""
    if row["in_controlled_shutdown"]:
        yield NoteKind.FENCING, f"{broker} is shutting down", ""


def _unregistration(_: _Log, row: Mapping[str, Any]) -> _Said:
    yield NoteKind.REGISTRATION, f"broker {row['broker_id']} is unregistered", ""


def _new_leader(log: _Log, row: Mapping[str, Any]) -> _Said:
    node = log.nodes.get(row["leader"], f"node {row['leader']}")
    log.active = node
    epoch = row["controller_epoch"]
    yield NoteKind.QUORUM, f"{node} leads, controller epoch {epoch}", ""


def _voters(_: _Log, row: Mapping[str, Any]) -> _Said:
    yield NoteKind.QUORUM, f"voters: {row['detail'] or 'changed'}", ""


def _who(leader: int | None) -> str:
    return "none" if leader in (None, -1) else str(leader)


_READERS: Final = {
    "LeaderChangeMessage": _new_leader,
    "KRaftVotersRecord": _voters,
    "VotersRecord": _voters,
    "TopicRecord": _topic,
    "RemoveTopicRecord": _removed_topic,
    "PartitionRecord": _partition,
    "PartitionChangeRecord": _partition_change,
    "RegisterBrokerRecord": _registration,
    "UnregisterBrokerRecord": _unregistration,
    "BrokerRegistrationChangeRecord": _registration_change,
    "FenceBrokerRecord": _registration_change,
    "UnfenceBrokerRecord": _registration_change,
}
