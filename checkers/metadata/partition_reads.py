"""Describes of partitions as arrays: a night shows each partition some hundred thousand times.

Few states are shown again and again: checks ask once which version a state may have been, and not
of each read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.metadata.remembered import remembered
from fencepost.checkers.sources import source_of

UNTOLD: Final = int(np.iinfo(np.int64).min)
"""The metadata offset of a read that tells none."""

_NO_ERROR: Final = "NONE"
_NUMBERS: Final = ("read", "call_ns", "return_ns", "metadata_offset")
_PLACE: Final = ("topic_id", "partition")
_STATE: Final = ("leader", "leader_epoch", "isr", "replicas")
_COLUMNS: Final = (*_NUMBERS, *_PLACE, *_STATE, "node", "error")
_ARRAYS: Final = (*_NUMBERS, "node", "state")
_LIST: Final = pa.list_(pa.string())


class ShownState(NamedTuple):
    """The state of a partition that a describe shows; None for fields that no API tells."""

    leader: int | None
    leader_epoch: int | None
    isr: tuple[int, ...] | None
    replicas: tuple[int, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReads:
    """The describes that showed one partition, as parallel arrays, in the order of their table."""

    read: NDArray[np.int64]
    call_ns: NDArray[np.int64]
    return_ns: NDArray[np.int64]
    metadata_offset: NDArray[np.int64]
    """`UNTOLD` where the read tells none."""
    node: NDArray[np.object_]
    state: NDArray[np.int64]
    """The place in `states` of what it showed."""
    states: tuple[ShownState, ...]
    """Those of all partitions."""

    def __len__(self) -> int:
        return len(self.read)

    def take(self, places: NDArray[Any] | slice) -> "PartitionReads":
        """Return some of them, by place, by mask or as they follow each other."""
        return replace(self, **{name: getattr(self, name)[places] for name in _ARRAYS})

    def shown(self, place: int) -> ShownState:
        """Return what one of them showed."""
        return self.states[int(self.state[place])]

    def by_state(self) -> Iterator[tuple[ShownState, NDArray[np.int64]]]:
        """Yield each state that any of them showed, with their places, ascending."""
        order = np.argsort(self.state, kind="stable")
        codes, first = np.unique(self.state[order], return_index=True)
        bounds = [*first.tolist(), len(order)]
        for code, (begin, end) in zip(codes.tolist(), pairwise(bounds), strict=True):
            yield self.states[code], order[begin:end]


NO_READS: Final = PartitionReads(
    **dict.fromkeys((*_NUMBERS, "state"), np.empty(0, dtype=np.int64)),
    node=np.empty(0, dtype=object),
    states=(),
)


@remembered
def partition_reads(describes: pa.Table) -> Mapping[tuple[str, int], PartitionReads]:
    """Return the reads in DESCRIBES without an error by (topic id, partition)."""
    states: dict[ShownState, int] = {}
    places: dict[tuple[str, int], int] = {}
    parts = [
        _columns(batch.filter(_shows_any(batch)), states, places)
        for batch in source_of(describes)(_COLUMNS)
    ]
    whole = {name: np.concatenate([part[name] for part in parts]) for name in (*_ARRAYS, "place")}
    place = whole.pop("place")
    every = PartitionReads(**whole, states=tuple(states)).take(np.argsort(place, kind="stable"))
    ends = np.cumsum(np.bincount(place, minlength=len(places))).tolist()
    return {
        one: every.take(slice(first, end))
        for one, (first, end) in zip(places, pairwise([0, *ends]), strict=True)
    }


def _shows_any(batch: pa.RecordBatch) -> pa.Array:
    told = (pc.is_valid(batch.column(name)) for name in _PLACE)
    return pc.and_(pc.equal(batch.column("error"), _NO_ERROR), pc.and_(*told))


def _columns(
    rows: pa.RecordBatch, states: dict[ShownState, int], places: dict[tuple[str, int], int]
) -> dict[str, NDArray[Any]]:
    words = [_words(rows.column(name)) for name in _STATE]
    found: dict[str, NDArray[Any]] = {
        name: pc.fill_null(rows.column(name), UNTOLD).to_numpy() for name in _NUMBERS
    }
    node = rows.column("node").dictionary_encode()
    found["node"] = np.array(node.dictionary.to_pylist(), dtype=object)[node.indices.to_numpy()]
    found["place"] = _numbered([rows.column(name) for name in _PLACE], _place, places)
    found["state"] = _numbered(words, _state, states)
    return found


def _words(column: pa.Array) -> pa.Array:
    """Return a list as a word: Arrow counts equal words, and no lists."""
    return pc.binary_join(column.cast(_LIST), ",") if pa.types.is_list(column.type) else column


def _place(topic_id: str, partition: int) -> tuple[str, int]:
    return topic_id, partition


def _state(
    leader: int | None, leader_epoch: int | None, isr: str | None, replicas: str | None
) -> ShownState:
    return ShownState(leader, leader_epoch, _ids(isr), _ids(replicas))


def _ids(word: str | None) -> tuple[int, ...] | None:
    return None if word is None else tuple(map(int, word.split(","))) if word else ()


def _numbered(
    columns: Sequence[pa.Array], made: Callable[..., Any], known: dict[Any, int]
) -> NDArray[np.int64]:
    """Return of each row the number of what is made of its columns; a new one gets the next."""
    coded = [column.dictionary_encode() for column in columns]
    codes = np.column_stack(
        [one.indices.fill_null(len(one.dictionary)).to_numpy().astype(np.int64) for one in coded]
    )
    different, place = np.unique(codes, axis=0, return_inverse=True)
    words = [[*one.dictionary.to_pylist(), None] for one in coded]
    numbers = [
        known.setdefault(made(*(words[at][code] for at, code in enumerate(row))), len(known))
        for row in different.tolist()
    ]
    return np.array(numbers, dtype=np.int64)[place.reshape(-1)]
