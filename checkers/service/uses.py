"""The asks of each use of a run, read batch by batch, summed up key by key.

`operations` has all keys by the time of the call, over several files: one task reads these in
order. A table of objects has the keys one after the other, each by the time of the call, spread
over files by key: each file is a task, and the sums are put together. In memory are one batch, the
asks that wait, and of each key its longest silences.
"""

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.grounds.operations import FaultWindow
from fencepost.checkers.runner.tables import SealedFile, opened
from fencepost.checkers.service.latencies import FaultReach, FaultWindows, LatencySums
from fencepost.checkers.service.silences import Asks, KeySilence, SilenceFold
from fencepost.history.models import MODEL_TABLES
from fencepost.history.operation import F, Outcome

KEPT_MAX: Final = 100
"""The silences of a key that are kept with their operations: the longest."""
_BATCH_ROWS: Final = 1 << 17
_READS: Final = frozenset(("read", "sync-read"))
_LATER: Final = frozenset(("final-read",))
"""Reads when everything is healed, and of no use to a client."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Operations of one table that are of one use."""

    name: str
    """In the plural."""
    table: str
    only: frozenset[str] = frozenset()
    """Their functions; empty: all but those of `never`."""
    never: frozenset[str] = frozenset()
    key: str = "key"
    """The column of what is asked for."""
    index: str = "index"
    have_refusals: bool = False
    """A failure without an error is an answer."""

    def takes(self, f: str) -> bool:
        """Return whether operations of this function are among them."""
        return f in self.only if self.only else f not in self.never


def _of_objects(table: str) -> tuple[Use, Use]:
    index = "transaction" if table == "micro_operations" else "index"
    return (
        Use(name="writes", table=table, never=_READS | _LATER, index=index, have_refusals=True),
        Use(name="reads", table=table, only=_READS, index=index, have_refusals=True),
    )


USES: Final[Mapping[str, tuple[Use, ...]]] = {
    "operations": (Use(name="sends", table="operations", only=frozenset((F.SEND.value,))),),
    **{table: _of_objects(table) for table in dict.fromkeys(MODEL_TABLES.values())},
    "metadata_writes": (Use(name="metadata writes", table="metadata_writes", key="topic"),),
}
"""The uses that each table tells of."""


@dataclass(slots=True)
class SilencesOfKey:
    """The silences of one key."""

    begins_ns: "array[int]" = field(default_factory=lambda: array("q"))
    ends_ns: "array[int]" = field(default_factory=lambda: array("q"))
    kept: list[KeySilence] = field(default_factory=list)
    """The longest, `KEPT_MAX` at most, with their operations."""
    stretch_count: int = 0

    def add(self, silences: Sequence[KeySilence]) -> None:
        """Take more."""
        if silences:
            self.begins_ns.extend(one.begin_ns for one in silences)
            self.ends_ns.extend(one.end_ns for one in silences)
            kept = nlargest(KEPT_MAX, (*self.kept, *silences), key=lambda one: one.length_ns)
            self.kept = kept


@dataclass(slots=True)
class UseSums:
    """The sums of one use."""

    ask_count: int = 0
    acknowledged_count: int = 0
    latencies: LatencySums = field(default_factory=LatencySums)
    silences: dict[str, SilencesOfKey] = field(default_factory=dict)
    """By key; of all that were asked for."""

    def merge(self, other: "UseSums") -> None:
        """Take the sums of other keys, too."""
        self.ask_count += other.ask_count
        self.acknowledged_count += other.acknowledged_count
        self.latencies.merge(other.latencies)
        self.silences.update(other.silences)


class Fold:
    """A sum of batches to `UseSums`, key by key."""

    def __init__(
        self, windows: Sequence[FaultWindow], *, least_ns: int, bound_ns: int | None = None
    ) -> None:
        """`least_ns`: of a silence; `bound_ns`: of latency, above which asks are counted."""
        self._windows = FaultWindows(windows)
        self._least_ns = least_ns
        self._sums = UseSums(latencies=LatencySums(bound_ns=bound_ns))
        self._open: dict[str, tuple[SilenceFold, FaultReach]] = {}

    def add(self, key: str, asks: Asks) -> None:
        """Take asks of a key, called no earlier than those before."""
        if key not in self._open:
            self._open[key] = (SilenceFold(self._least_ns), FaultReach(self._windows))
            self._sums.silences[key] = SilencesOfKey()
        silences, reach = self._open[key]
        self._sums.ask_count += len(asks.index)
        self._sums.acknowledged_count += int(asks.ok.sum())
        self._sums.latencies.add(key, asks, list(reach.of(asks)))
        self._sums.silences[key].add(silences.add(asks))

    def close(self, *, but: Collection[str] = ()) -> None:
        """End all keys but these."""
        for key in [one for one in self._open if one not in but]:
            silences, _ = self._open.pop(key)
            mine = self._sums.silences[key]
            mine.add(silences.done())
            mine.stretch_count = silences.stretch_count

    def done(self) -> UseSums:
        """Return the sums so far, all keys ended."""
        self.close()
        return self._sums


def sums_of_files(
    files: Sequence[SealedFile],
    uses: Sequence[Use],
    windows: Sequence[FaultWindow],
    *,
    least_ns: int,
    bound_ns: int | None,
) -> list[UseSums]:
    """Return the sums of each of these uses of one table, whose files are read in this order.

    Raises HarnessError, naming the file, if one is missing, damaged or of another schema.
    """
    folds = [Fold(windows, least_ns=least_ns, bound_ns=bound_ns) for _ in uses]
    one_by_one = uses[0].table in MODEL_TABLES.values()
    for file in files:
        for batch in _batches(file, uses[0]):
            there = list(_by_key(batch, uses))
            for place, key, asks in there:
                folds[place].add(key, asks)
            for fold in folds if one_by_one and batch.num_rows else ():
                fold.close(but={batch.column(uses[0].key)[-1].as_py()})
    return [fold.done() for fold in folds]


def _batches(file: SealedFile, use: Use) -> Iterator[pa.RecordBatch]:
    columns = [use.index, "f", use.key, "call_ns", "return_ns", "outcome", "error"]
    with opened(file, use.table) as parquet:
        yield from parquet.iter_batches(_BATCH_ROWS, columns=columns, use_threads=False)


def _by_key(batch: pa.RecordBatch, uses: Sequence[Use]) -> Iterator[tuple[int, str, Asks]]:
    """Yield the asks of each key, with the place of their use."""
    f, outcome, keys = (_encoded(batch.column(name)) for name in ("f", "outcome", uses[0].key))
    ok = _among(outcome, {Outcome.OK.value})
    refused = _among(outcome, {Outcome.FAIL.value}) & _values(batch.column("error").is_null())
    call_ns = _values(batch.column("call_ns"))
    returned = batch.column("return_ns")
    index = _values(batch.column(uses[0].index))
    end_ns = np.where(_values(returned.is_valid()), _values(returned.fill_null(0)), call_ns)
    key_codes = _values(keys.indices.fill_null(-1))
    for place, use in enumerate(uses):
        mine = _among(f, {one for one in f.dictionary.to_pylist() if use.takes(one)})
        rows = np.flatnonzero(mine & (key_codes >= 0))
        rows = rows[np.argsort(key_codes[rows], kind="stable")]
        asks = Asks(
            index=index[rows],
            call_ns=call_ns[rows],
            # An operation that ended before it began is no longer than nothing.
            end_ns=np.maximum(end_ns, call_ns)[rows],
            answered=(ok | refused)[rows] if use.have_refusals else ok[rows],
            ok=ok[rows],
        )
        codes = key_codes[rows]
        ends = [*(np.flatnonzero(np.diff(codes)) + 1).tolist(), len(rows)]
        for begin, end in zip([0, *ends], ends, strict=False):
            if begin < end:
                yield (
                    place,
                    keys.dictionary[int(codes[begin])].as_py(),
                    asks.where(slice(begin, end)),
                )


def _encoded(words: pa.Array) -> Any:
    return words if pa.types.is_dictionary(words.type) else words.dictionary_encode()


def _among(words: Any, chosen: Collection[str]) -> NDArray[np.bool_]:
    wanted = np.array([one in chosen for one in words.dictionary.to_pylist()] or [False])
    return np.asarray(wanted[_values(words.indices)], dtype=np.bool_)


def _values(column: pa.Array) -> NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))
