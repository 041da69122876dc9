"""The sightings of topics by reads, and the latest moment at which each can have been made.

A *sighting* is what one read showed of one topic: its absence, its id, or the number that
its setting carries. A write *makes* what is seen: a creation an id and a number, a change of
settings a number, a deletion the absence. The *rank* of a sighting is the latest moment at which
what it shows can have been made:

- an id: when its creation was acknowledged. Ids are never given twice, so it was made once;
- a number: when the write of it ended. One without a clear end (info) can still happen, at any
  time: then nothing is ever newer;
- absence: the latest end of a deletion that was called before the read returned, info ones without
  an end; without such a deletion, a time before everything.

A sighting that no recorded write can have made (an id that an info creation gave, another's
setting) has no rank, and neither proves nor is proven anything. A failed write made nothing.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.metadata.shared_values import shared_values
from checkers.rows import taken

__all__ = [
    "ABSENCE",
    "ALTER",
    "CREATE",
    "DELETE",
    "EVER",
    "ID",
    "NUMBER",
    "Sightings",
    "Writes",
    "sightings_by_topic",
    "writes_by_topic",
]

EVER: Final = int(np.iinfo(np.int64).max)
"""The end of a write that may still happen, and the rank of what nothing is newer than."""
_BEFORE: Final = -1
"""The rank of an absence that no deletion made."""

ABSENCE, ID, NUMBER = range(3)
"""Kinds of sightings."""
CREATE, ALTER, DELETE = range(3)
"""Kinds of writes."""
_FS: Final = ("create-topic", "alter-config", "delete-topic")
_UNKNOWN_TOPIC: Final = "UNKNOWN_TOPIC_OR_PARTITION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """The writes to one topic that happened or may have, as parallel arrays, by their calls."""

    index: NDArray[np.int64]
    f: NDArray[np.int64]
    """CREATE, ALTER or DELETE."""
    node: NDArray[np.object_]
    call_ns: NDArray[np.int64]
    return_ns: NDArray[np.int64]
    """EVER, unless it was acknowledged."""
    topic_id: NDArray[np.object_]
    number: NDArray[np.int64]
    """-1 where it writes none."""

    @property
    def acknowledged(self) -> NDArray[np.bool_]:
        """A mask of the ok ones."""
        mask: NDArray[np.bool_] = self.return_ns != EVER
        return mask


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """The sightings of one topic as parallel arrays, by the numbers of the reads."""

    read: NDArray[np.int64]
    process: NDArray[np.int64]
    node: NDArray[np.object_]
    call_ns: NDArray[np.int64]
    return_ns: NDArray[np.int64]
    kind: NDArray[np.int64]
    topic_id: NDArray[np.object_]
    number: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.read)

    def take(self, rows: NDArray[Any]) -> "Sightings":
        """Return these rows, by number or by mask."""
        return taken(self, rows)

    def makers(self, writes: Writes) -> NDArray[np.int64]:
        """Return the write that made each, if it is a single known one; otherwise -1."""
        by_id = _unique(writes.topic_id.tolist())
        by_number = _unique([one if one >= 0 else None for one in writes.number.tolist()])
        makers = [
            by_id.get(topic_id, -1) if kind == ID else by_number.get(number, -1)
            for kind, topic_id, number in zip(
                self.kind.tolist(), self.topic_id.tolist(), self.number.tolist(), strict=True
            )
        ]
        return np.where(self.kind == ABSENCE, -1, np.array(makers, dtype=np.int64))

    def ranks(self, writes: Writes) -> NDArray[np.int64]:
        """Return the latest moment at which each can have been made; EVER without one."""
        maker = self.makers(writes)
        made = np.where(maker >= 0, _at(writes.return_ns, maker), EVER)
        gone = _absence_ranks(writes, self.return_ns)
        ranks: NDArray[np.int64] = np.where(self.kind == ABSENCE, gone, made)
        return ranks


def writes_by_topic(table: pa.Table) -> dict[str, Writes]:
    """Return METADATA_WRITES, failed ones left out, by topic."""
    kept = table.filter(pc.not_equal(table["outcome"], "fail"))
    return {
        topic: Writes(
            index=_numbers(rows, "index"),
            f=np.array([_FS.index(f) for f in rows["f"].to_pylist()], dtype=np.int64),
            node=_words(rows, "node"),
            call_ns=_numbers(rows, "call_ns"),
            return_ns=np.where(
                _words(rows, "outcome") == "ok", _numbers(rows, "return_ns", null=EVER), EVER
            ),
            topic_id=_words(rows, "topic_id"),
            number=_numbers(rows, "config_value", null=-1),
        )
        for topic, rows in _by_topic(kept, order="call_ns")
    }


def sightings_by_topic(table: pa.Table) -> Iterator[tuple[str, Sightings]]:
    """Yield the sightings in DESCRIBES, topic by topic: one a read and topic."""
    partition = pc.fill_null(table["partition"], 0)
    unknown = pc.and_(pc.equal(table["error"], _UNKNOWN_TOPIC), pc.is_null(table["partition"]))
    telling = pc.or_(
        pc.or_(pc.is_valid(table["topic_id"]), pc.is_valid(table["config_value"])), unknown
    )
    first = pc.equal(partition, 0)
    for topic, rows in _by_topic(table.filter(pc.and_(telling, first)), order="read"):
        has_id = rows["topic_id"].is_valid().to_numpy()
        has_number = rows["config_value"].is_valid().to_numpy()
        yield (
            topic,
            Sightings(
                read=_numbers(rows, "read"),
                process=_numbers(rows, "process"),
                node=_words(rows, "node"),
                call_ns=_numbers(rows, "call_ns"),
                return_ns=_numbers(rows, "return_ns"),
                kind=np.where(has_id, ID, np.where(has_number, NUMBER, ABSENCE)),
                topic_id=_words(rows, "topic_id"),
                number=_numbers(rows, "config_value", null=-1),
            ),
        )


def _absence_ranks(writes: Writes, seen_ns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the latest end of a deletion that was called by then."""
    deletions = writes.f == DELETE
    call_ns, return_ns = writes.call_ns[deletions], writes.return_ns[deletions]
    latest = np.concatenate([[_BEFORE], np.maximum.accumulate(return_ns)])
    ranks: NDArray[np.int64] = latest[np.searchsorted(call_ns, seen_ns, side="right")]
    return ranks


def _unique(makers: list[Any]) -> Mapping[Any, int]:
    """Return the place of each of these values; -1 for a value in several places."""
    places: dict[Any, int] = {}
    for place, made in enumerate(makers):
        if made is not None:
            places[made] = -1 if made in places else place
    return places


def _at(values: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the values at these places; anything where the place is -1."""
    return values[places] if len(values) else np.zeros(len(places), dtype=np.int64)


def _by_topic(table: pa.Table, *, order: str) -> Iterator[tuple[str, pa.Table]]:
    table = table.sort_by([("topic", "ascending"), (order, "ascending")])
    if not len(table):
        return
    codes = table["topic"].combine_chunks().dictionary_encode().indices.to_numpy()
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    for start, end in zip(starts, np.append(starts[1:], len(table)), strict=True):
        rows = table.slice(int(start), int(end - start))
        yield rows["topic"][0].as_py(), rows


def _numbers(table: pa.Table, name: str, *, null: int | None = None) -> NDArray[np.int64]:
    column = table[name] if null is None else pc.fill_null(table[name], null)
    numbers: NDArray[np.int64] = column.to_numpy().astype(np.int64)
    return numbers


def _words(table: pa.Table, name: str) -> NDArray[np.object_]:
    words: NDArray[np.object_] = np.array(shared_values(table[name].combine_chunks()), dtype=object)
    return words
