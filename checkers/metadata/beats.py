"""The heartbeats of brokers to their controllers, as arrays: a night has millions of them.

They are paired as `checkers.metadata.rpcs` pairs requests and answers: an answer belongs to the
last request before it with its connection and correlation id; of several the last one counts.

Source: KIP-631, BrokerHeartbeat.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.metadata.exchanges import BY_PROXY, mask
from fencepost.checkers.metadata.rpcs import UNREACHED
from fencepost.checkers.sources import Source

HEARTBEAT: Final = "BrokerHeartbeat"
ABSENT: Final = int(np.iinfo(np.int64).min)
"""The number in place of one that a frame does not have, or of a time that never came."""

_SAID: Final = ("frame", "connection", "correlation_id", "time_ns", "item")
_ASKED: Final = ("forwarded_ns", "broker_id", "broker_epoch", "fetch_offset")
_ANSWERED: Final = ("lowest_acknowledged_offset",)
_WORDS: Final = ("source", "target")
_FLAGS: Final = ("fenced", "shutting_down")
_COLUMNS: Final = (
    *_SAID,
    *_ASKED,
    *_ANSWERED,
    *_WORDS,
    *_FLAGS,
    *("api", "direction", "action", "error"),
)
_NARROW: Final = ("frame", "connection", "correlation_id", "item", "source", "target")

_TOGETHER: Final = 1 << 17
"""Rows of which even a narrow column is a mapping of its own (`checkers.runner.memory`)."""

_Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TapedHeartbeat:
    """A heartbeat and its answer. Times are ns of the run; `ABSENT` for what there is not."""

    frame: int
    source: str
    target: str
    reached_ns: int
    answer_frame: int
    answered_ns: int
    lowest: int
    """The lowest acknowledged offset that it was told."""
    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TapedHeartbeats:
    """Heartbeats as parallel arrays, in the order of their arrival at the proxy."""

    nodes: Sequence[str]
    """The names that `source` and `target` number."""
    frame: NDArray[np.int32]
    source: NDArray[np.int32]
    target: NDArray[np.int32]
    reached_ns: NDArray[np.int64]
    """The time when it was passed on; ABSENT: it never reached its target."""
    broker_id: NDArray[np.int64]
    broker_epoch: NDArray[np.int64]
    applied: NDArray[np.int64]
    """The metadata offset that the broker says it has applied."""
    answer_frame: NDArray[np.int64]
    answered_ns: NDArray[np.int64]
    """The time when the answer had arrived at the proxy; ABSENT: the proxy saw none."""
    ok: NDArray[np.bool_]
    """The target answered without an error."""
    lowest: NDArray[np.int64]
    """The lowest acknowledged offset that an answer without an error tells."""
    told_unfenced: NDArray[np.bool_]
    told_to_go: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def telling(self) -> NDArray[np.int64]:
        """The places of those that reached their target and were told a lowest offset."""
        return np.flatnonzero((self.lowest != ABSENT) & (self.reached_ns != ABSENT))

    def at(self, place: int) -> TapedHeartbeat:
        """Return one of them."""
        return TapedHeartbeat(
            frame=int(self.frame[place]),
            source=self.nodes[int(self.source[place])],
            target=self.nodes[int(self.target[place])],
            reached_ns=int(self.reached_ns[place]),
            answer_frame=int(self.answer_frame[place]),
            answered_ns=int(self.answered_ns[place]),
            lowest=int(self.lowest[place]),
            broker_id=int(self.broker_id[place]),
            broker_epoch=int(self.broker_epoch[place]),
        )


def beats_of(wire: Source) -> TapedHeartbeats:
    """Return the heartbeats of a tape. Reads the columns that it needs, batch by batch."""
    nodes: dict[str, int] = {}
    asked, answered = _frames(wire, nodes)
    order = np.lexsort((asked["item"], asked["frame"], asked["time_ns"]))
    for name in asked:  # one after the other: all at once would be there twice
        asked[name] = asked[name][order]
    answer = _answers(asked, answered)
    has = answer >= 0

    def told(name: str, absent: Any) -> NDArray[Any]:
        found = np.full(len(answer), absent)
        found[has] = answered[name][answer[has]]
        return found

    ok = told("ok", absent=False)
    return TapedHeartbeats(
        nodes=tuple(nodes),
        frame=asked["frame"],
        source=asked["source"],
        target=asked["target"],
        reached_ns=asked["forwarded_ns"],
        broker_id=asked["broker_id"],
        broker_epoch=asked["broker_epoch"],
        applied=asked["fetch_offset"],
        answer_frame=told("frame", ABSENT),
        answered_ns=told("time_ns", ABSENT),
        ok=ok,
        lowest=np.where(ok, told("lowest_acknowledged_offset", ABSENT), ABSENT),
        told_unfenced=ok & told("unfenced", absent=False),
        told_to_go=ok & told("to_go", absent=False),
    )


def _frames(wire: Source, nodes: dict[str, int]) -> tuple[_Columns, _Columns]:
    """Return the requests, and the answers that the proxy did not make up."""
    asked, answered = _Growing(), _Growing()
    for batch in wire(_COLUMNS):
        mine = batch.filter(pc.equal(batch.column("api"), HEARTBEAT))
        is_request = pc.equal(mine.column("direction"), "request")
        by_proxy = pc.equal(mine.column("action"), BY_PROXY)
        asked.add(_requests(mine.filter(is_request), nodes))
        answered.add(_responses(mine.filter(pc.invert(pc.or_(is_request, by_proxy)))))
    return asked.joined(), answered.joined()


def _requests(rows: pa.RecordBatch, nodes: dict[str, int]) -> _Columns:
    found = {name: _numbers(rows, name) for name in (*_SAID, *_ASKED)}
    for name in _WORDS:
        coded = rows.column(name).dictionary_encode()
        codes = [nodes.setdefault(word, len(nodes)) for word in coded.dictionary.to_pylist()]
        found[name] = np.array(codes, dtype=np.int32)[coded.indices.to_numpy()]
    unreached = pc.is_in(rows.column("action"), pa.array(UNREACHED))
    found["forwarded_ns"] = np.where(mask(unreached), ABSENT, found["forwarded_ns"])
    return found


def _responses(rows: pa.RecordBatch) -> _Columns:
    found = {name: _numbers(rows, name) for name in (*_SAID, *_ANSWERED)}
    found["ok"] = mask(pc.equal(rows.column("error"), "NONE"))
    found["unfenced"] = mask(pc.invert(rows.column("fenced")))
    found["to_go"] = mask(rows.column("shutting_down"))
    return found


def _numbers(rows: pa.RecordBatch, name: str) -> NDArray[Any]:
    numbers: NDArray[Any] = pc.fill_null(rows.column(name).cast(pa.int64()), ABSENT).to_numpy()
    return numbers.astype(np.int32) if name in _NARROW else numbers


class _Growing:
    """Columns that grow batch by batch, without thousands of small arrays at a time."""

    def __init__(self) -> None:
        self._large: list[_Columns] = []
        self._small: list[_Columns] = []
        self._count = 0

    def add(self, rows: _Columns) -> None:
        """Take rows; all have the same columns."""
        self._small.append(rows)
        self._count += len(next(iter(rows.values())))
        if self._count >= _TOGETHER:
            self._large.append(_joined(self._small))
            self._small, self._count = [], 0

    def joined(self) -> _Columns:
        """Return all rows; there is at least one batch."""
        return _joined([*self._large, *self._small])


def _joined(parts: list[_Columns]) -> _Columns:
    # Drop the parts of a column once it is joined.
    return {name: np.concatenate([part.pop(name) for part in parts]) for name in tuple(parts[0])}


def _answers(asked: _Columns, answered: _Columns) -> NDArray[np.int64]:
    """Return of each request the place of its answer; -1 without one."""
    count = len(asked["frame"])
    both = {
        name: np.concatenate([asked[name], answered[name]])
        for name in ("connection", "correlation_id", "time_ns", "frame", "item")
    }
    is_answer = np.arange(len(both["frame"])) >= count
    ids = _packed(both["connection"], both["correlation_id"])
    order = np.lexsort((both["item"], both["frame"], is_answer, both["time_ns"], ids))
    ids, time_ns, is_answer = ids[order], both["time_ns"][order], is_answer[order]
    # A group is the requests of one moment and the answers up to the next request of these ids.
    begins = ~is_answer & (
        np.append(True, (ids[1:] != ids[:-1]) | (time_ns[1:] != time_ns[:-1]) | is_answer[:-1])
        if len(ids)
        else np.empty(0, dtype=np.bool_)
    )
    group = np.cumsum(begins) - 1
    first = np.flatnonzero(begins)
    last = np.full(len(first), -1, dtype=np.int64)
    here = np.flatnonzero(is_answer & (group >= 0))
    here = here[ids[first[group[here]]] == ids[here]]
    # In order, so that of several the last one stays.
    last[group[here]] = order[here] - count
    found = np.full(count, -1, dtype=np.int64)
    requests = np.flatnonzero(~is_answer)
    found[order[requests]] = last[group[requests]]
    return found


def _packed(connection: NDArray[np.int32], correlation_id: NDArray[np.int32]) -> NDArray[np.int64]:
    packed: NDArray[np.int64] = (connection.astype(np.int64) << 32) | correlation_id.astype(
        np.uint32
    ).astype(np.int64)
    return packed


def in_turn(beats: TapedHeartbeats, places: NDArray[np.int64]) -> Iterator[tuple[int, list[int]]]:
    """Yield the places of heartbeats in the order in which they reached their targets.

    With each, those that were answered since the one before it (as `checkers.metadata.rpcs.in_turn`
    has it). All of `places` reached their target and were answered.
    """
    reached_ns, answered_ns = beats.reached_ns, beats.answered_ns
    taken = places[np.lexsort((beats.frame[places], reached_ns[places]))]
    waiting = taken[np.argsort(answered_ns[taken], kind="stable")]
    until = np.searchsorted(answered_ns[waiting], reached_ns[taken], side="left")
    begin = 0
    for place, end in zip(taken.tolist(), until.tolist(), strict=True):
        yield place, waiting[begin:end].tolist()
        begin = max(begin, end)
