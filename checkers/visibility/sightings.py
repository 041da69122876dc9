"""Sightings of what only goes forward, and the latest moment at which each can have been made.

A *sighting* is what one read shows of one thing: the absence of a topic, its id, the number that
its setting carries; the leader epoch of a partition of one topic id; the number of partitions of
one topic id. Its *rank* is the latest moment at which what it shows can have been made:

- an id: when its creation was acknowledged. Ids are never given twice, so it was made once;
- a setting: when the write of it ended. One without a clear end (info) can still happen, at any
  time: then nothing is ever newer;
- an absence: the latest end of a deletion that was called before the read returned, info ones
  without an end; without such a deletion, a time before everything;
- a leader epoch, or a number of partitions: itself.

A sighting that no single recorded write can have made (an id that an info creation gave, another's
setting) has no rank, and neither proves nor is proven anything. A failed write made nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.metadata.shared_values import shared_values
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import taken
from fencepost.checkers.visibility.newer import NONE

Numbers = NDArray[np.int64]

EVER: Final = int(np.iinfo(np.int64).max)
"""The end of a write that may still happen, and the rank of what nothing is newer than."""
_BEFORE: Final = -1
"""The rank of an absence that no deletion made."""
_ABSENCE, ID, NUMBER = range(3)
"""Kinds of sightings; settings, leader epochs and numbers of partitions are numbers."""
_CREATE, _ALTER, _DELETE, GROW = range(4)
"""Kinds of claims; a sighting of what has an order of its own is a growth."""
_FS: Final = ("create-topic", "alter-config", "delete-topic")
OUTDATES: Final = np.array(
    # creation, change of settings, deletion, growth
    [
        [True, True, False, False],
        [True, False, True, False],
        [True, True, True, True],
    ]
)
"""Whether a claim of a kind outdates a sighting of a kind, by sighting and claim."""
_UNKNOWN_TOPIC: Final = "UNKNOWN_TOPIC_OR_PARTITION"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """Sightings as parallel arrays, by the numbers of the reads."""

    read: Numbers
    process: Numbers
    node: NDArray[np.object_]
    call_ns: Numbers
    return_ns: Numbers
    kind: Numbers
    topic_id: NDArray[np.object_]
    number: Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataClaims:
    """Claims as parallel arrays."""

    f: Numbers
    rank: Numbers
    known_ns: Numbers
    node: NDArray[np.object_]
    origin: Numbers
    """The place of the write, or of the sighting, that makes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Writes:
    """The writes to one topic that happened or may have, as parallel arrays, by their calls."""

    index: Numbers
    f: Numbers
    node: NDArray[np.object_]
    call_ns: Numbers
    return_ns: Numbers
    """EVER, unless it was acknowledged."""
    topic_id: NDArray[np.object_]
    number: Numbers
    """-1 where it writes none."""

    def clause(self, write: int) -> Proof:
        """Return the clause for a write."""
        rule, made = {
            _CREATE: ("the creation of topic id {topic_id}", {"topic_id": self.topic_id[write]}),
            _ALTER: ("the change of settings to {setting}", {"setting": self.number[write]}),
            _DELETE: ("the deletion", {}),
        }[int(self.f[write])]
        by: dict[str, Any] = {"write": self.index[write], "node": self.node[write]}
        return Proof.of(rule + " (write {write}, through {node})", **made, **by)

    def claims(self, makers: Numbers, known_ns: Numbers, node: NDArray[Any]) -> MetadataClaims:
        """Return the claims that these writes make, one each; none where there is no write."""
        kept = np.flatnonzero((makers != NONE) & (known_ns != EVER))
        made = makers[kept]
        return MetadataClaims(
            f=self.f[made],
            rank=self.call_ns[made],
            known_ns=known_ns[kept],
            node=node[kept],
            origin=kept,
        )


def writes_by_topic(table: pa.Table) -> Mapping[str, Writes]:
    """Return METADATA_WRITES, failed ones left out, by topic."""
    happened = table.filter(pc.not_equal(table["outcome"], "fail"))
    table, pieces = pieces_of(happened, ("topic",), then="call_ns")
    return_ns = numbers(table, "return_ns", null=EVER)
    every = Writes(
        index=numbers(table, "index"),
        f=np.array([_FS.index(f) for f in table["f"].to_pylist()], dtype=np.int64),
        node=words(table, "node"),
        call_ns=numbers(table, "call_ns"),
        return_ns=np.where(words(table, "outcome") == "ok", return_ns, EVER),
        topic_id=words(table, "topic_id"),
        number=numbers(table, "config_value", null=-1),
    )
    return {table["topic"][piece.start].as_py(): taken(every, piece) for piece in pieces}


def sightings_of_topics(topics: pa.Table) -> tuple[Sightings, Mapping[str, slice]]:
    """Return the sightings of topics in DESCRIBES, one a read, and where those of each lie."""
    absent = pc.and_(pc.equal(topics["error"], _UNKNOWN_TOPIC), pc.is_null(topics["partition"]))
    shown = pc.or_(pc.is_valid(topics["topic_id"]), pc.is_valid(topics["config_value"]))
    first = pc.equal(pc.fill_null(topics["partition"], 0), 0)
    telling = topics.filter(pc.and_(pc.or_(shown, absent), first))
    table, pieces = pieces_of(telling, ("topic",), then="read")
    has_id, has_number = (table[name].is_valid() for name in ("topic_id", "config_value"))
    kind = np.where(has_id, ID, np.where(has_number, NUMBER, _ABSENCE))
    seen = sightings_of(table, kind=kind, number=numbers(table, "config_value", null=-1))
    return seen, {table["topic"][piece.start].as_py(): piece for piece in pieces}


def sightings_of(table: pa.Table, *, kind: Numbers, number: Numbers) -> Sightings:
    """Return the sightings in rows of DESCRIBES, of these kinds."""
    return Sightings(
        read=numbers(table, "read"),
        process=numbers(table, "process"),
        node=words(table, "node"),
        call_ns=numbers(table, "call_ns"),
        return_ns=numbers(table, "return_ns"),
        kind=kind,
        topic_id=words(table, "topic_id"),
        number=number,
    )


def makers_of(seen: Sightings, writes: Writes) -> Numbers:
    """Return the write that made each sighting, if it is a single known one; else NONE."""
    by_id = _places(writes.topic_id.tolist())
    by_number = _places([one if one >= 0 else None for one in writes.number.tolist()])
    made = zip(seen.kind.tolist(), seen.topic_id.tolist(), seen.number.tolist(), strict=True)
    makers = [
        by_id.get(topic_id, NONE) if kind == ID else by_number.get(number, NONE)
        for kind, topic_id, number in made
    ]
    return np.where(seen.kind == _ABSENCE, NONE, np.array(makers, dtype=np.int64))


def ranks_of(seen: Sightings, writes: Writes, makers: Numbers) -> Numbers:
    """Return the latest moment at which each can have been made; EVER without one."""
    deleted = writes.f == _DELETE
    latest = np.concatenate([[_BEFORE], np.maximum.accumulate(writes.return_ns[deleted])])
    gone = latest[np.searchsorted(writes.call_ns[deleted], seen.return_ns, side="right")]
    made = np.where(makers != NONE, writes.return_ns[makers], EVER)
    found: Numbers = np.where(seen.kind == _ABSENCE, gone, made)
    return found


def creations_ns(topic_writes: pa.Table) -> Mapping[str, int]:
    """Return when each topic id was created (acknowledged), for ids of a single creation."""
    created = acknowledged(topic_writes, "create-topic")
    ids, times = created["topic_id"].to_pylist(), created["return_ns"].to_pylist()
    creations = Counter(ids)
    return {
        topic_id: return_ns
        for topic_id, return_ns in zip(ids, times, strict=True)
        if topic_id is not None and creations[topic_id] == 1
    }


def acknowledged(writes: pa.Table, f: str) -> pa.Table:
    """Return the writes of a function that are ok."""
    return writes.filter(pc.and_(pc.equal(writes["outcome"], "ok"), pc.equal(writes["f"], f)))


def pieces_of(
    table: pa.Table, names: Sequence[str], *, then: str
) -> tuple[pa.Table, Sequence[slice]]:
    """Return the rows in the order of these columns, and where those that are equal in them lie.

    These are in the order of the column `then`.
    """
    table = table.sort_by([(name, "ascending") for name in (*names, then)]).combine_chunks()
    codes = [table[name].combine_chunks().dictionary_encode().indices.to_numpy() for name in names]
    new = np.any([np.diff(one, prepend=-1) != 0 for one in codes], axis=0)
    starts = [*np.flatnonzero(new).tolist(), len(table)]
    return table, [slice(*bounds) for bounds in pairwise(starts)]


def numbers(table: pa.Table, name: str, *, null: int | None = None) -> Numbers:
    """Return a column of numbers, with another number for null."""
    column = table[name] if null is None else pc.fill_null(table[name], null)
    found: Numbers = column.to_numpy().astype(np.int64)
    return found


def words(table: pa.Table, name: str) -> NDArray[np.object_]:
    """Return a column of words, None for null."""
    found: NDArray[np.object_] = np.array(shared_values(table[name].combine_chunks()), dtype=object)
    return found


def _places(made: Sequence[Any]) -> Mapping[Any, int]:
    """Return the place of each of these values; NONE for a value in several places."""
    places: dict[Any, int] = {}
    for place, value in enumerate(made):
        if value is not None:
            places[value] = NONE if value in places else place
    return places
