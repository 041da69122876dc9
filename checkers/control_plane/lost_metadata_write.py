"""C15 lost-metadata-write: A write to the metadata was acknowledged and is not in the log.

A topic was created or deleted, or a setting of it changed, and that was acknowledged. The log of
record, which goes on beyond that, has no such record (the topic id, a removal of the topic, the
value) that can have been appended between the call and the return. Nothing is judged where the log
begins with a snapshot.

A controller answers a client's write once its records are committed. In the ZooKeeper generation a
TopicDeletionRecord stands for the removal: the topic itself goes later. A deletion that is under
way already is granted once more there: when the topic is gone, or at once, as its znode is there.
So one that repeats others may have the record of the first since the topic was created.

The times of the log are the wall clock of its controller, widened by what clocks may differ, and a
record was appended between the time of its batch and that of the next one (`log_of_record`). A log
that begins with a snapshot has forgotten records, and one that ends before the write returned may
have been cut off on the disks: nothing is judged there. Nor is a write without a clear end, which
may be in the log or not.

Meaning: An administrator was told that it is done, and it is not.
Case: an acknowledged write that the metadata log goes on beyond
Source: KIP-631, the controller; KIP-595: a committed record stays
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.records import MetadataRecord
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.table_check import TableCheck
from fencepost.history.counter import counter_value

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.QUORUM,
    needs=("metadata_log", "metadata_writes"),
)
NAME: Final = ENTRY.name

_CREATE, _DELETE, _ALTER = "create-topic", "delete-topic", "alter-config"
_WORDS: Final = {
    _CREATE: "the creation",
    _DELETE: "the deletion",
    _ALTER: "a change of a setting",
}

_Row = Mapping[str, Any]
_Place = tuple[str, str]
"""The action and its subject: a topic id, a topic's name, or `topic=value`."""


def lost_metadata_writes(tables: Tables, seen: MetadataView) -> Judged:
    """Find acknowledged writes without a record. Reads `metadata_log`, `metadata_writes`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    found: dict[str, list[Proof | None]] = {}
    for write, answer in _judged(tables["metadata_writes"].to_pylist(), seen):
        found.setdefault(write["topic"], []).append(answer)
    for topic in sorted(found):
        yield topic, counted(NAME, topic, found[topic])


def _judged(writes: list[_Row], seen: MetadataView) -> Iterator[tuple[_Row, Proof | None]]:
    until_ns = seen.known_until_ns
    if seen.log.begins_with_snapshot:
        return
    appended = _appended_ms(seen)
    begun_ns = _begun_ns(writes) if seen.facts.on_zookeeper else {}
    for write in writes:
        acknowledged = write["outcome"] == "ok" and write["return_ns"] is not None
        place = _place_of(write) if acknowledged else None
        if place is None or write["return_ns"] >= until_ns:
            continue
        in_the_log = any(
            seen.facts.latest_ns(stamp) >= begun_ns.get(write["index"], write["call_ns"])
            and seen.facts.earliest_ns(stamp) <= write["return_ns"]
            for stamp in appended.get(place, ())
        )
        yield write, None if in_the_log else _proof(write, until_ns)


def _begun_ns(writes: list[_Row]) -> Mapping[int, int]:
    """Return since when a deletion may have been decided, where that is before its call."""
    found: dict[int, int] = {}
    first_ns: dict[str, int] = {}
    for write in writes:
        topic = write["topic"]
        if write["f"] == _DELETE:
            if topic in first_ns:
                found[write["index"]] = first_ns[topic]
            if write["outcome"] != "fail":
                first_ns.setdefault(topic, write["call_ns"])
        elif write["f"] == _CREATE and write["outcome"] == "ok":
            first_ns.pop(topic, None)
    return found


def _place_of(write: _Row) -> _Place | None:
    """Return what the log has to contain of a write; None if that is not known."""
    if write["f"] == _CREATE:
        return (_CREATE, write["topic_id"]) if write["topic_id"] else None
    if write["f"] == _DELETE:
        return _DELETE, write["topic"]
    value = written_value(write)
    return None if value is None else (_ALTER, f"{write['topic']}={value}")


def written_value(write: _Row) -> str | None:
    """Return the value of its setting that a row of METADATA_WRITES asks for; None if of none."""
    if write["f"] == _CREATE:
        return counter_value(0)
    if write["f"] != _ALTER or write["config_value"] is None:
        return None
    return counter_value(write["config_value"])


def _appended_ms(seen: MetadataView) -> Mapping[_Place, list[int]]:
    """Return the timestamps at which the log of record has each thing that writes ask for."""
    found: dict[_Place, list[int]] = {}
    for record in seen.log.records:
        if (place := _place_in_log(record)) is not None:
            found.setdefault(place, []).append(record.timestamp_ms)
    return found


def _place_in_log(record: MetadataRecord) -> _Place | None:
    match record.type:
        case "TopicRecord":
            return _CREATE, record.topic_id or ""
        case "RemoveTopicRecord" | "TopicDeletionRecord":
            return _DELETE, record.topic or ""
        case "ConfigRecord":
            return _ALTER, f"{record.topic}={record.value}"
    return None


def _proof(write: _Row, until_ns: int) -> Proof:
    of_what = {
        _CREATE: Proof.of(" ({topic_id})", topic_id=write["topic_id"]),
        _ALTER: Proof.of(" (to {config_value})", config_value=write["config_value"]),
    }.get(write["f"], Proof.of(""))
    return Proof.of(
        _WORDS[write["f"]] + " of topic {topic}{of_what}, called at {call}, was acknowledged by "
        "{node} at {return_} (write {write}), and the metadata log, which goes "
        "on until {until}, has no record of it from that time",
        values={"write": write["index"]},
        times={"call": write["call_ns"], "return_": write["return_ns"], "until": until_ns},
        topic=write["topic"],
        of_what=of_what,
        node=write["node"],
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=lost_metadata_writes,
    ),
)
