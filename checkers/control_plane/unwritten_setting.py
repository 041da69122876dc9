"""C21 unwritten-setting: A topic's setting was changed without a request.

The log of record gives a setting of a topic of the run another value, after the topic's creation,
and no client of the run had called a change to that value by the latest moment at which the record
can have been appended.

The settings of a topic come with its creation, and stand until somebody changes them. Of the
parties of a run one does, the `metadata` workload, and it records each change before it asks for
it; a creation asks for the first value. So every other value that the log of record gives a setting
of one of the run's topics has a write of that value behind it, called by the latest moment at which
the record can have been appended. One that ended unknown may have been made, and may be made twice.

Not judged: what belongs to a creation (in the log of a KRaft controller it follows its TopicRecord,
in ZooKeeper it goes before it), what a snapshot says, values that were there already, what may have
been appended after the last write that is known, and topics that the run does not know as its own:
the brokers' internal ones, and those of others. Nothing is where settings are copied from ZooKeeper
to controllers, or where no write is known of clients that were to write. Where a write is proven to
be missing from its table (`write_numbers`), the answer is unknown.

Meaning: A topic keeps, acknowledges or deletes records by a rule that no client set.
Case: a change of a setting of a topic of the run in the metadata log, before the last write of
clients to the metadata
Source: KIP-631, ConfigRecord; KIP-339, IncrementalAlterConfigs
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.control_plane.lost_metadata_write import written_value
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.records import MetadataRecord
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.metadata.write_numbers import skipped_write
from fencepost.checkers.proof import Proof
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REQUEST,
    needs=("metadata_log",),
)
NAME: Final = ENTRY.name
_WRITES: Final = "metadata_writes"
_GROWTHS: Final = "partition_writes"
"""They are counted by the numbers that writes to topics carry."""
_REMOVED: Final = ("RemoveTopicRecord", "TopicDeletionRecord")
"""From a deletion that is decided on, a topic's settings may go at any time."""

_Called = Mapping[tuple[str, str], int]
"""When a change of a topic's setting to a value was first called, by both."""


def unwritten_settings(tables: Tables, seen: MetadataView) -> Judged:
    """Find changes without a write. Reads `metadata_log` and, if recorded, `metadata_writes`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    counted_all = _GROWTHS in seen.facts.recorded
    if counted_all and (doubt := skipped_write(tables[_WRITES], tables[_GROWTHS])):
        yield from doubtful(NAME, doubt)
        return
    writes = tables[_WRITES]
    if seen.facts.migrating or (_WRITES in seen.facts.recorded and not len(writes)):
        return
    called, until_ns = _called(writes), pc.max(writes["call_ns"]).as_py()
    topics = {key.rpartition("-")[0] for key in seen.facts.keys} | {topic for topic, _ in called}
    found: dict[str, list[Proof | None]] = {}
    for record in _changes(seen.log.records):
        told = until_ns is None or seen.facts.latest_ns(record.timestamp_ms) < until_ns
        if record.topic in topics and told:
            found.setdefault(record.topic, []).append(_judged(record, called, seen))
    for topic in sorted(found):
        yield topic, counted(NAME, topic, found[topic])


def _called(writes: pa.Table) -> _Called:
    found: dict[tuple[str, str], int] = {}
    for write in writes.to_pylist():
        value = written_value(write)
        if value is not None and write["outcome"] != "fail":
            place = (write["topic"], value)
            found[place] = min(write["call_ns"], found.get(place, write["call_ns"]))
    return found


def _changes(records: Iterable[MetadataRecord]) -> Iterator[MetadataRecord]:
    """Yield the records that give a setting of a living topic another value than it had."""
    values: dict[str | None, dict[str | None, str | None]] = {}
    names: dict[str | None, str | None] = {}
    """Of the living topics, by id."""
    created: tuple[str | None, int] | None = None
    """The topic whose records of its creation these may be, and when its batch began."""
    for record in records:
        if record.type == "ConfigRecord" and record.topic:
            of_topic = values.setdefault(record.topic, {})
            comes_with = created == (record.topic, record.timestamp_ms)
            stands = record.topic in names.values() and not comes_with and not record.snapshot
            if stands and of_topic.get(record.name) != record.value:
                yield record
            of_topic[record.name] = record.value
        elif record.type == "TopicRecord":
            created = record.topic, record.timestamp_ms
            names[record.topic_id] = record.topic
        elif record.type in _REMOVED:
            gone = names.pop(record.topic_id, record.topic)
            names = {one: name for one, name in names.items() if name != gone}
            values.pop(gone, None)
        elif record.type != "PartitionRecord":
            created = None


def _judged(record: MetadataRecord, called: _Called, seen: MetadataView) -> Proof | None:
    call_ns = called.get((record.topic or "", record.value or ""))
    latest_ns = seen.facts.latest_ns(record.timestamp_ms)
    if call_ns is not None and call_ns <= latest_ns:
        return None
    return Proof.of(
        "{name} of topic {topic} became {value} at metadata offset {metadata_offset}, by {by}, and "
        "no client had called a change to that value by then",
        metadata_offsets={"metadata_offset": record.metadata_offset},
        times={"by": latest_ns},
        sources=dict.fromkeys(("name", "topic", "value"), "metadata_offset"),
        name=record.name,
        topic=record.topic,
        value="nothing" if record.value is None else record.value,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=unwritten_settings,
        tables=("metadata_log", _WRITES, _GROWTHS),
    ),
)
