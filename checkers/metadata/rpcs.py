"""The tape (`wire`) as requests and their answers: what checks of the control plane compare.

A request and its response have a connection and a correlation id in common, and their items are
matched by topic and partition. A node of a simulated cluster may use a number again on the same
connection: then an answer belongs to the last request before it. Frames that the proxy answered in
a node's place, or never passed on, were no doing of the cluster: `reached` and `answered` tell.
"""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.metadata.frames import TapeRow, frames_of
from checkers.metadata.remembered import remembered
from checkers.rows import OPEN_NS
from checkers.sources import Source, source_of

__all__ = [
    "BY_PROXY",
    "UNREACHED",
    "Rpc",
    "accepted_registrations",
    "in_turn",
    "rpcs",
    "taken",
]

UNREACHED: Final = ("answered", "dropped", "undeliverable")
"""The fates, at the proxy, of frames that never reached their target."""
BY_PROXY: Final = "answered"
"""The fate of a frame that the proxy made up itself."""

_CORRELATION: Final = "correlation_id"
_IDS: Final = ("api", "connection", _CORRELATION)
"""The columns that a request and its response have in common."""
_ARRIVAL: Final = ("time_ns", "frame", "item")
_PLACE: Final = (*_IDS, *_ARRIVAL)
_AT_ONCE: Final = 1 << 14


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


@remembered
def rpcs(wire: pa.Table | Source, *apis: str) -> Sequence[Rpc]:
    """Return the requests of these APIs, item by item, in the order of their arrival at the proxy.

    One that is held there is overtaken by others: `taken` has the order of their targets.
    """
    wanted, rows, places = pa.array(apis, pa.string()), list[TapeRow](), list[pa.RecordBatch]()
    # Batch by batch: as lists of their columns, all rows at once take more than as rows.
    for batch in source_of(wire)((*TapeRow._fields, _CORRELATION)):
        for first in range(0, batch.num_rows, _AT_ONCE):
            several = batch.slice(first, _AT_ONCE)
            mine = several.filter(pc.is_in(several.column("api"), wanted))
            rows += frames_of(mine)
            places.append(mine.select(list(_PLACE)))
    if not rows:
        return ()
    order = pa.Table.from_batches(places)
    answer_of: list[int | None] = [None] * len(rows)
    for exchange in _exchanges(order):
        _pair(rows, exchange, answer_of)
    return tuple(
        Rpc(rows[place], None if answer is None else rows[answer])
        for place in _order_of(order, *_ARRIVAL).tolist()
        if rows[place].direction == "request"
        for answer in (answer_of[place],)
    )


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


def _order_of(frames: pa.Table, *columns: str) -> NDArray[np.int64]:
    """Return the places of all rows, by these columns."""
    return np.lexsort([_codes(frames[name]) for name in reversed(columns)])


def _codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return numbers in the order of a column of numbers; of words, the same for equal ones."""
    if pa.types.is_string(column.type):
        column = column.combine_chunks().dictionary_encode().indices
    codes: NDArray[np.int64] = pc.fill_null(column.cast(pa.int64()), -1).to_numpy()
    return codes


def _exchanges(frames: pa.Table) -> Iterator[list[int]]:
    """Yield the places of rows that have an API and ids in common, in the order of arrival."""
    order = _order_of(frames, *_IDS, *_ARRIVAL)
    if len(order):
        ids = np.column_stack([_codes(frames[name])[order] for name in _IDS])
        bounds = np.flatnonzero(np.any(ids[1:] != ids[:-1], axis=1)) + 1
        ends = np.append(bounds, len(order)).tolist()
        yield from (order[first:end].tolist() for first, end in pairwise([0, *ends]))


def _pair(rows: Sequence[TapeRow], exchange: Sequence[int], answer_of: list[int | None]) -> None:
    """Note the answer of each request of an exchange."""
    requests = [place for place in exchange if rows[place].direction == "request"]
    answers: dict[int | None, list[int]] = {}
    for place in exchange:
        row = rows[place]
        if row.direction != "request" and row.action != BY_PROXY:
            answers.setdefault(row.partition, []).append(place)
    if not answers:
        return
    asked_ns = sorted({rows[place].time_ns for place in requests})
    for place in requests:
        answer_of[place] = _answer(rows, rows[place], asked_ns, answers)


def _answer(
    rows: Sequence[TapeRow],
    request: TapeRow,
    asked_ns: Sequence[int],
    answers: Mapping[int | None, Sequence[int]],
) -> int | None:
    """Return the item that speaks of the same partition; else the one that speaks of none.

    Of several that speak of none (IsrChange), the one in the same place. Only answers that came
    after the request and before the next request of these ids. One that the proxy duplicated is on
    the tape twice at one time: both have all the answers.
    """
    following = bisect_right(asked_ns, request.time_ns)
    until_ns = asked_ns[following] if following < len(asked_ns) else OPEN_NS

    def candidates(partition: int | None) -> Iterator[int]:
        for place in answers.get(partition, ()):
            if request.time_ns <= rows[place].time_ns < until_ns:
                yield place

    if request.partition is not None:
        for place in candidates(request.partition):
            if _same_topic(rows[place], request):
                return place
    whole = None
    for place in candidates(None):
        whole = place if whole is None or rows[place].item == request.item else whole
    return whole


def _same_topic(one: TapeRow, other: TapeRow) -> bool:
    if one.topic_id and other.topic_id:
        return one.topic_id == other.topic_id
    return one.topic == other.topic
