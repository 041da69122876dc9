"""The tape (`wire`) as requests and their answers: what checks of the control plane compare.

Frames that the proxy answered in a node's place, or never passed on, were no doing of the cluster:
`reached` and `answered` tell.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.metadata.exchanges import CORRELATION, exchanges, mask
from fencepost.checkers.metadata.frames import TapeRow, frames_of
from fencepost.checkers.metadata.remembered import remembered
from fencepost.checkers.metadata.shared_values import shared_values
from fencepost.checkers.sources import Source, source_of
from fencepost.history.cluster_schema import WIRE

UNREACHED: Final = ("answered", "dropped", "undeliverable")
"""The fates, at the proxy, of frames that never reached their target."""

_AT_ONCE: Final = 1 << 12
_AT_HAND: Final = 1 << 16
"""The rows of a tape that may all be Python's at a time, which takes some 50 MB."""


@dataclass(frozen=True, slots=True)
class Rpc:
    """One item of a request, and the item of its response that answers it."""

    request: TapeRow
    response: TapeRow | None
    """None if the proxy saw none, or made it up."""

    @property
    def frame(self) -> int:
        """The frame of the request."""
        return self.request.frame

    @property
    def api(self) -> str:
        """The API of both."""
        return self.request.api

    @property
    def api_version(self) -> int:
        """The version that the request names."""
        return self.request.api_version

    @property
    def source(self) -> str:
        """The node that asked."""
        return self.request.source

    @property
    def target(self) -> str:
        """The node that was asked."""
        return self.request.target

    @property
    def connection(self) -> int:
        """The number of their connection."""
        return self.request.connection

    @property
    def asked_ns(self) -> int:
        """The time when the request had arrived at the proxy: it was sent no later."""
        return self.request.time_ns

    @property
    def reached_ns(self) -> int | None:
        """The time when it was passed on; None: it never reached the target."""
        return None if self.request.action in UNREACHED else self.request.forwarded_ns

    @property
    def answer_frame(self) -> int | None:
        """The frame of the response."""
        return None if self.response is None else self.response.frame

    @property
    def error(self) -> str | None:
        """The answer's error; None if there is no answer."""
        return None if self.response is None else self.response.error

    @property
    def answered_ns(self) -> int | None:
        """The time when the response reached the proxy: sent no later, so decided earlier."""
        return None if self.response is None else self.response.time_ns

    @property
    def returned_ns(self) -> int | None:
        """The time when the response was passed on to the requesting node; None: it never was."""
        return None if self.response is None else self.response.forwarded_ns

    @property
    def ok(self) -> bool:
        """The target answered, without an error."""
        return self.error == "NONE"

    def of(self, column: str) -> Any:
        """Return a column of the request."""
        return getattr(self.request, column)

    def answered(self, column: str) -> Any:
        """Return a column of the response; None without a response."""
        return None if self.response is None else getattr(self.response, column)


class Rpcs(Sequence[Rpc]):
    """Requests, each with its answer. Of a long tape each is made when it is asked for.

    A row of Python's takes half a kilobyte, and a broker sends a quarter of a million heartbeats a
    night: what a check keeps of them are `Rpcs`, which are numbers.
    """

    def __init__(self, tape: "_Tape", places: NDArray[np.int64]) -> None:
        self._tape, self._places = tape, places

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Rpc]:
        return self._tape.rpcs(self._places)

    @overload
    def __getitem__(self, place: int) -> Rpc: ...

    @overload
    def __getitem__(self, place: slice) -> "Rpcs": ...

    def __getitem__(self, place: int | slice) -> "Rpc | Rpcs":
        if isinstance(place, slice):
            return Rpcs(self._tape, self._places[place])
        return next(self._tape.rpcs(self._places[[place]]))

    def of(self, column: str) -> pa.Array:
        """Return a column of the requests."""
        return self._tape.column(column, self._tape.asked[self._places])

    def answered(self, column: str) -> pa.Array:
        """Return a column of the responses; null without one."""
        return self._tape.column(column, self._tape.answer[self._places])

    @cached_property
    def asked_ns(self) -> NDArray[np.int64]:
        """The times when they arrived at the proxy: none was sent later."""
        times: NDArray[np.int64] = self.of("time_ns").to_numpy()
        return times

    @property
    def ok(self) -> NDArray[np.bool_]:
        """Which of them were answered without an error."""
        return mask(pc.equal(self.answered("error"), "NONE"))

    def where(self, condition: pa.Array | NDArray[np.bool_]) -> "Rpcs":
        """Return those of which it holds, in their order. A null is false."""
        kept = condition if isinstance(condition, np.ndarray) else mask(condition)
        return Rpcs(self._tape, self._places[kept])

    def sorted_by(self, *columns: NDArray[np.int64]) -> "Rpcs":
        """Return them in the order of these numbers, the first of which counts most."""
        return Rpcs(self._tape, self._places[np.lexsort(columns[::-1])])

    def by(self, *columns: str) -> Mapping[tuple[Any, ...], "Rpcs"]:
        """Return them by these columns of the request, where none of these is null."""
        places: dict[tuple[Any, ...], list[int]] = {}
        values = (shared_values(self.of(name)) for name in columns)
        for place, key in enumerate(zip(*values, strict=True)):
            if None not in key:
                places.setdefault(key, []).append(place)
        return {key: Rpcs(self._tape, self._places[mine]) for key, mine in places.items()}

    def asked_between(self, from_ns: int, until_ns: int) -> "Rpcs":
        """Return those that were asked after and before these times; they stand in that order."""
        first = np.searchsorted(self.asked_ns, from_ns, side="right")
        return self[first : max(first, np.searchsorted(self.asked_ns, until_ns))]

    def taken(self) -> "Rpcs":
        """Return those that reached their target, in the order in which they did."""
        unreached = pc.is_in(self.of("action"), pa.array(UNREACHED))
        reached = pc.and_not(pc.is_valid(self.of("forwarded_ns")), pc.fill_null(unreached, False))
        mine = self.where(reached)
        return mine.sorted_by(mine.of("forwarded_ns").to_numpy(), mine.of("frame").to_numpy())


class _Tape:
    """The frames of a tape, paired."""

    def __init__(self, frames: pa.Table) -> None:
        self._frames = frames
        self.asked, self.answer = exchanges(frames)
        """The rows of the requests, and of their answers; -1 without one."""
        self._made: Sequence[Rpc] | None = None
        if len(frames) <= _AT_HAND:
            self._made = tuple(self._make(np.arange(len(self.asked))))

    def rpcs(self, places: NDArray[np.int64]) -> Iterator[Rpc]:
        """Yield the requests in these places."""
        if self._made is not None:
            return map(self._made.__getitem__, places.tolist())
        several = (places[at : at + _AT_ONCE] for at in range(0, len(places), _AT_ONCE))
        return (rpc for some in several for rpc in self._make(some))

    def column(self, name: str, rows: NDArray[np.int64]) -> pa.Array:
        """Return a column of some rows; null for -1."""
        found = self._frames[name].take(pa.array(rows, mask=rows < 0)).combine_chunks()
        return found.cast(WIRE.field(name).type) if pa.types.is_null(found.type) else found

    def _make(self, places: NDArray[np.int64]) -> Iterator[Rpc]:
        asked, answer = self.asked[places], self.answer[places]
        answers = self._rows(answer[answer >= 0])
        for request, has in zip(self._rows(asked), (answer >= 0).tolist(), strict=True):
            yield Rpc(request, next(answers) if has else None)

    def _rows(self, rows: NDArray[np.int64]) -> Iterator[TapeRow]:
        for batch in self._frames.take(pa.array(rows)).combine_chunks().to_batches():
            yield from frames_of(batch)


@remembered
def rpcs(wire: pa.Table | Source, *apis: str) -> Rpcs:
    """Return the requests of these APIs, item by item, in the order of their arrival at the proxy.

    One that is held there is overtaken by others: `Rpcs.taken` has the order of their targets.
    """
    wanted, columns = pa.array(apis, pa.string()), (*TapeRow._fields, CORRELATION)
    frames = [
        _narrowed(batch.filter(pc.is_in(batch.column("api"), wanted)))
        for batch in source_of(wire)(columns)
    ]
    frames = frames or [pa.table({name: pa.nulls(0) for name in columns})]
    joined = pa.concat_tables(frames, promote_options="default")
    tape = _Tape(joined.unify_dictionaries().combine_chunks())
    return Rpcs(tape, np.arange(len(tape.asked)))


def _narrowed(frames: pa.RecordBatch) -> pa.Table:
    """Return the same with numbers for words, and no memory for columns without a value."""
    columns = [
        pa.nulls(len(column))
        if column.null_count == len(column)
        else column.dictionary_encode()
        if pa.types.is_string(column.type)
        else column
        for column in frames.columns
    ]
    return pa.table(columns, names=frames.schema.names)


def taken(several: Iterable[Rpc]) -> list[Rpc]:
    """Return the requests that reached their target, in the order in which they did."""
    reached = (rpc for rpc in several if rpc.reached_ns is not None)
    return sorted(reached, key=lambda rpc: (rpc.reached_ns, rpc.frame))


def in_turn(several: Iterable[Rpc]) -> Iterator[tuple[Rpc, list[Rpc]]]:
    """Yield the requests as `taken`; with each, those that were answered since the one before it.

    All that were answered with it or with one before it had their answer when it was taken.
    """
    requests = taken(several)
    answered = (rpc for rpc in requests if rpc.answered_ns is not None)
    waiting = deque(sorted(answered, key=lambda rpc: rpc.answered_ns or 0))
    for rpc in requests:
        before = []
        while waiting and (waiting[0].answered_ns or 0) < (rpc.reached_ns or 0):
            before.append(waiting.popleft())
        yield rpc, before


def accepted_registrations(wire: pa.Table | Source) -> Mapping[tuple[int, int], Rpc]:
    """Return the request by which a broker registered, by (broker id, broker epoch).

    Of several that were answered with one epoch it is the one that was answered first: a request
    that was held is told what its repetition, sent later, has made.
    """
    accepted = [
        rpc
        for rpc in rpcs(wire, "BrokerRegistration")
        if rpc.ok and rpc.answered("broker_epoch") is not None
    ]
    found: dict[tuple[int, int], Rpc] = {}
    for rpc in sorted(accepted, key=lambda one: one.answered_ns or 0):
        found.setdefault((rpc.of("broker_id"), rpc.answered("broker_epoch")), rpc)
    return found
