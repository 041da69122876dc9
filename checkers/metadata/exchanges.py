"""Which row of the tape (`wire`) answers which.

A request and its response have an API, a connection and a correlation id in common, and their items
are matched by topic and partition. A node of a simulated cluster may use a number again on the same
connection: then an answer belongs to the last request before it. What the proxy answered in a
node's place is no answer.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.metadata.shared_values import shared_values
from fencepost.checkers.rows import OPEN_NS

BY_PROXY: Final = "answered"
"""The fate of a frame that the proxy made up itself."""
CORRELATION: Final = "correlation_id"

_IDS: Final = ("api", "connection", CORRELATION)
_ARRIVAL: Final = ("time_ns", "frame", "item")
_ONE_EACH: Final = 2
"""The rows of an exchange of one request and one answer."""


class _Row(NamedTuple):
    """The columns by which a row and its answer are matched."""

    direction: str
    time_ns: int
    item: int
    partition: int | None
    topic: str | None
    topic_id: str | None


def exchanges(frames: pa.Table) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of the requests, as they arrived, and of each that of its answer, or -1.

    `frames`: rows of `wire`, in any order.
    """
    is_request = mask(pc.equal(frames["direction"], "request"))
    by_proxy = mask(pc.equal(frames["action"], BY_PROXY))
    answer_of = np.full(len(frames), -1, dtype=np.int64)
    if len(frames):
        order = _order_of(frames, *_IDS, *_ARRIVAL)
        order = order[is_request[order] | ~by_proxy[order]]
        sizes = _sizes(frames, order)
        # Nearly all of them are one request and one answer, of which a night has a million.
        of_two = sizes == _ONE_EACH
        by_two = order[np.repeat(of_two, sizes)].reshape(-1, _ONE_EACH)
        requests, answers, plain = _plain(frames, by_two, is_request)
        answer_of[requests] = answers
        other = sizes > 1
        other[np.flatnonzero(of_two)[plain]] = False
        _pair(frames, order[np.repeat(other, sizes)], sizes[other], answer_of)
    arrived = _order_of(frames, *_ARRIVAL)
    asked = arrived[is_request[arrived]]
    return asked, answer_of[asked]


def _sizes(frames: pa.Table, order: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return how many rows have an API and ids in common, one after the other in that order."""
    differs = np.zeros(max(0, len(order) - 1), dtype=np.bool_)
    for name in _IDS:
        ids = _codes(frames[name])[order]
        differs |= ids[1:] != ids[:-1]
    return np.diff(np.concatenate([[0], np.flatnonzero(differs) + 1, [len(order)]]))


def _plain(
    frames: pa.Table, by_two: NDArray[np.int64], is_request: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Return of the pairs of rows (requests, answers or -1, which pairs are of this kind).

    The kind: one request and one answer, not both of which are about a partition.
    """
    is_first = is_request[by_two[:, 0]]
    requests = np.where(is_first, by_two[:, 0], by_two[:, 1])
    answers = np.where(is_first, by_two[:, 1], by_two[:, 0])
    of_partition = mask(pc.is_valid(frames["partition"]))
    plain = is_request[requests] & ~is_request[answers]
    plain &= ~(of_partition[requests] & of_partition[answers])
    requests, answers = requests[plain], answers[plain]
    time_ns = frames["time_ns"].to_numpy()
    is_its = ~of_partition[answers] & (time_ns[answers] >= time_ns[requests])
    return requests, np.where(is_its, answers, -1), plain


def _pair(
    frames: pa.Table,
    places: NDArray[np.int64],
    sizes: NDArray[np.int64],
    answer_of: NDArray[np.int64],
) -> None:
    """Note the answers in all other exchanges: their places one after the other, in order."""
    told = frames.select(list(_Row._fields)).take(pa.array(places))
    rows = dict(zip(places.tolist(), map(_Row._make, zip(*_lists(told), strict=True)), strict=True))
    ends = np.cumsum(sizes).tolist()
    for first, end in pairwise([0, *ends]):
        for request, answer in _pairs(rows, places[first:end].tolist()):
            answer_of[request] = answer


def _lists(rows: pa.Table) -> Iterator[list[Any]]:
    return (shared_values(column.combine_chunks()) for column in rows.columns)


def _pairs(rows: Mapping[int, _Row], exchange: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the places of the requests of an exchange that were answered, and of their answers."""
    requests = [place for place in exchange if rows[place].direction == "request"]
    answers: dict[int | None, list[int]] = {}
    for place in exchange:
        if rows[place].direction != "request":
            answers.setdefault(rows[place].partition, []).append(place)
    if not answers:
        return
    asked_ns = sorted({rows[place].time_ns for place in requests})
    for place in requests:
        answer = _answer(rows, rows[place], asked_ns, answers)
        if answer is not None:
            yield place, answer


def _answer(
    rows: Mapping[int, _Row],
    request: _Row,
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


def _same_topic(one: _Row, other: _Row) -> bool:
    if one.topic_id and other.topic_id:
        return one.topic_id == other.topic_id
    return one.topic == other.topic


def _order_of(frames: pa.Table, *columns: str) -> NDArray[np.int64]:
    """Return the places of all rows, by these columns."""
    return np.lexsort([_codes(frames[name]) for name in reversed(columns)])


def _codes(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """Return numbers in the order of a column of numbers; of words, the same for equal ones."""
    words = column.combine_chunks()
    if pa.types.is_string(words.type):
        words = words.dictionary_encode()
    if pa.types.is_dictionary(words.type):
        words = words.indices
    codes: NDArray[np.int64] = pc.fill_null(words.cast(pa.int64()), -1).to_numpy()
    return codes


def mask(condition: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return a condition as a numpy array; a null is false."""
    found: NDArray[np.bool_] = pc.fill_null(condition, fill_value=False).to_numpy(
        zero_copy_only=False
    )
    return found
