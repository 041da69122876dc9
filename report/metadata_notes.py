"""The decisions of the cluster in its metadata log, as notes: joins, elections, registrations.

A record states what is new; a reader wants to know what it was before. So the log is followed from
its beginning, and each note names both. Records of one batch that say the same of several
partitions are one note.

The log's times are the active controller's wall clock in ms; the manifest ties it to the run's
clock. That makes them exact enough to be read beside frames, and no finer than a millisecond.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import chain
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from history.manifest import Manifest

__all__ = ["DecisionNote", "NoteKind", "notes_of", "topic_names"]

_BATCH: Final = 1000
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


def notes_of(metadata_log: pa.Table, manifest: Manifest) -> Iterator[DecisionNote]:
    """Yield every decision of the log, in its order.

    None if the manifest does not tie the clocks.
    """
    if not manifest.origin_utc_ns:
        return
    kept = metadata_log.filter(pc.is_in(metadata_log["type"], value_set=pa.array(list(_READERS))))
    log = _Log(nodes={number: node for node, number in manifest.node_ids.items()})
    last: DecisionNote | None = None
    for row, only_on in _distinct(kept):
        time_ns = row["timestamp_ms"] * _NS_A_MS - manifest.origin_utc_ns
        for note in log.notes(row, time_ns):
            if row["snapshot"]:
                continue
            said = f"{note.words} (only on {only_on})" if only_on else note.words
            told = replace(note, words=said)
            if last is not None and not _is_one(last, told):
                yield last
                last = None
            last = told if last is None else _joined(last, told)
    if last is not None:
        yield last


def topic_names(metadata_log: pa.Table) -> Mapping[str, str]:
    """Return the name of each topic that the log created, by its id."""
    created = metadata_log.filter(pc.equal(metadata_log["type"], "TopicRecord"))
    rows = created.select(["topic_id", "topic"]).to_pylist()
    return {row["topic_id"]: row["topic"] for row in rows if row["topic"]}


def _is_one(last: DecisionNote, note: DecisionNote) -> bool:
    """Return whether both say the same, of partitions, at one time."""
    same = (last.time_ns, last.words) == (note.time_ns, note.words)
    return bool(note.about and last.about and same)


def _joined(last: DecisionNote, note: DecisionNote) -> DecisionNote:
    return replace(last, about=(*last.about, *note.about), details=(*last.details, *note.details))


def _distinct(log: pa.Table) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield each record once, by offset; and, if nodes disagree about an offset, say whose it is.

    Every node has nearly all of them: only one row of each leaves the table.
    """
    # A later snapshot would tell the state before the records that led to it.
    oldest = pc.min(log.filter(log["snapshot"])["metadata_offset"])
    is_oldest = pc.fill_null(pc.equal(log["metadata_offset"], oldest), fill_value=False)
    told = log.filter(pc.or_(pc.invert(log["snapshot"]), is_oldest))
    # Records of a snapshot share its offset, and are told apart by their digests alone.
    records = (
        told.append_column("row", pa.array(range(len(told)), pa.int64()))
        .group_by(["snapshot", "metadata_offset", "digest"])
        .aggregate([("row", "min"), ("node", "distinct")])
        .sort_by(
            [("snapshot", "descending"), ("metadata_offset", "ascending"), ("row_min", "ascending")]
        )
    )
    rows = told.take(records["row_min"])
    logged = pc.invert(records["snapshot"])
    versions = Counter(records["metadata_offset"].filter(logged).to_pylist())
    nodes = records["node_distinct"]
    batches = rows.to_batches(max_chunksize=_BATCH)
    for place, row in enumerate(chain.from_iterable(map(pa.RecordBatch.to_pylist, batches))):
        differs = not row["snapshot"] and versions[row["metadata_offset"]] > 1
        yield row, ", ".join(sorted(nodes[place].as_py())) if differs else ""


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
