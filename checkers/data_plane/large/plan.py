"""The plan of a large key: its segments, from the surveys of its pieces, and their inputs.

Pure sums of summaries: what is held is a few rows a piece and process, a count a block of offsets,
and the sends that are undecided, never the rows of the key.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.data_plane.key_summary import KeySummary, Spans, furthest, spans_of
from fencepost.checkers.data_plane.large.survey import Blocks, Grain, PieceSurvey
from fencepost.checkers.data_plane.steps import Carried, by_process
from fencepost.checkers.membership import is_among
from fencepost.checkers.rows import UNKNOWN_OFFSET, Rows, joined

_OFFSET_MAX = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySegment:
    """The rows of a key whose homes lie in a range of offsets."""

    start: int
    end: int
    """Behind the last."""
    last_before: int
    """The highest offset below `start` at which a record stands; `UNKNOWN_OFFSET` if none."""
    pieces: tuple[int, ...]
    """The numbers of the pieces that have such rows, and perhaps of others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPlan:
    """The plan by which a key is judged."""

    around: KeySummary
    carried: tuple[Carried, ...]
    """Into each piece."""
    segments: tuple[KeySegment, ...]


def disorder_of(surveys: Sequence[PieceSurvey]) -> str:
    """Return where rows of the pieces are out of the history's order; empty if nowhere."""
    for number, piece in enumerate(surveys):
        if piece.disorder or (number and piece.first <= surveys[number - 1].last):
            return (
                f"records are not sorted by operation and position near operation {piece.first[0]}"
            )
    return ""


def carried_into(surveys: Sequence[PieceSurvey]) -> tuple[Carried, ...]:
    """Return the rows that are carried into each piece."""
    now, into = Carried.nothing(), []
    for piece in surveys:
        into.append(now)
        now = Carried(
            polls=_last(now.polls, piece.carried.polls),
            finals=_last(now.finals, piece.carried.finals),
            sends=_last(now.sends, piece.carried.sends),
        )
    return tuple(into)


def happened_among(undecided: Rows, *, returned: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the operations among the undecided sends of which an ok read returned a value.

    `returned`: the values of undecided sends that ok reads returned.
    """
    seen = is_among(undecided.value, returned)
    operations: NDArray[np.int64] = np.unique(undecided.operation[seen])
    return operations


def planned(
    surveys: Sequence[PieceSurvey],
    *,
    happened: NDArray[np.int64],
    assigned: bool,
    grain: Grain,
) -> KeyPlan:
    """Cut a key into segments.

    `happened`: of `happened_among`; `assigned`: consumers assigned themselves their keys.
    """
    carried = carried_into(surveys)
    blocks = [
        _with_homeless(piece, into, grain) for piece, into in zip(surveys, carried, strict=True)
    ]
    undecided = joined([piece.undecided for piece in surveys])
    decided = undecided.offset[is_among(undecided.operation, happened)]
    return KeyPlan(
        around=_surroundings(surveys, happened=happened, assigned=assigned),
        carried=carried,
        segments=_segments(blocks, decided=decided, grain=grain),
    )


def shared_values(ranges: Sequence[Spans]) -> Spans:
    """Return ranges of values that several segments may share; `ranges`: of each segment."""
    starts = np.concatenate([one.start for one in ranges])
    ends = np.concatenate([one.end for one in ranges])
    at = np.concatenate([starts, ends])
    closes = np.arange(len(at)) >= len(starts)
    order = np.lexsort((closes, at))
    at, step = at[order], np.where(closes[order], -1, 1)
    depth = np.cumsum(step)
    opened = at[(step > 0) & (depth == 2)]  # noqa: PLR2004  # two segments
    closed = at[(step < 0) & (depth == 1)]
    return Spans(start=opened, end=closed)


def _last(before: Rows, now: Rows) -> Rows:
    """Return the last row of each process."""
    rows = joined([before, now])
    order = by_process(rows.process)
    process = rows.process[order]
    ends = np.append(process[1:] != process[:-1], True)[: len(order)]
    return rows.take(order[ends])


def _with_homeless(piece: PieceSurvey, carried: Carried, grain: Grain) -> Blocks:
    """Return the blocks of a piece, with the sends whose home is that of a send before it."""
    homes = dict(zip(carried.sends.process.tolist(), carried.sends.offset.tolist(), strict=True))
    number = [homes.get(process, 0) // grain.block_offsets for process in piece.homeless]
    count = list(piece.homeless.values())
    return Blocks(
        number=np.append(piece.blocks.number, np.array(number, dtype=np.int64)),
        row_count=np.append(piece.blocks.row_count, np.array(count, dtype=np.int64)),
        highest=np.append(piece.blocks.highest, np.full(len(number), UNKNOWN_OFFSET)),
    )


def _surroundings(
    surveys: Sequence[PieceSurvey], *, happened: NDArray[np.int64], assigned: bool
) -> KeySummary:
    bound = max(piece.bound for piece in surveys)
    reader = next(piece.reader for piece in surveys if piece.bound == bound)
    gave_up_ns: dict[int, int] = {}
    for process, time_ns in (item for one in surveys for item in one.gave_up_ns.items()):
        gave_up_ns[process] = min(time_ns, gave_up_ns.get(process, time_ns))
    return KeySummary(
        bound=bound,
        reader=reader,
        spans=spans_of([piece.stretches for piece in surveys], assigned=assigned),
        gave_up_ns=gave_up_ns,
        reaches=furthest([piece.reaches for piece in surveys]),
        happened=happened,
    )


def _segments(
    blocks: Sequence[Blocks], *, decided: NDArray[np.int64], grain: Grain
) -> tuple[KeySegment, ...]:
    number, of_block = np.unique(
        np.concatenate([piece.number for piece in blocks]), return_inverse=True
    )
    row_count = np.bincount(
        of_block, weights=np.concatenate([piece.row_count for piece in blocks])
    ).astype(np.int64)
    first = _cuts(row_count, segment_rows=grain.segment_rows)
    starts = np.append(0, number[first[1:]] * grain.block_offsets)
    standing = np.concatenate([*(piece.highest for piece in blocks), decided])
    before = _highest_below(starts, standing)
    touching = [
        set((np.searchsorted(starts, one.number * grain.block_offsets, "right") - 1).tolist())
        for one in blocks
    ]
    ends = np.append(starts[1:], _OFFSET_MAX)
    return tuple(
        KeySegment(
            start=int(starts[segment]),
            end=int(ends[segment]),
            last_before=int(before[segment]),
            pieces=tuple(piece for piece, touched in enumerate(touching) if segment in touched),
        )
        for segment in range(len(starts))
    )


def _cuts(row_count: NDArray[np.int64], *, segment_rows: int) -> NDArray[np.int64]:
    """Return the first block of each segment: blocks in a row, as long as they fit together."""
    total, first = 0, [0]
    for block, count in enumerate(row_count.tolist()):
        if total and total + count > segment_rows:
            first.append(block)
            total = 0
        total += count
    return np.array(first, dtype=np.int64)


def _highest_below(starts: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return for each start, the highest of these offsets below it."""
    ordered = np.sort(offsets)
    place = np.searchsorted(ordered, starts) - 1
    return np.where(place >= 0, np.append(ordered, UNKNOWN_OFFSET)[place], UNKNOWN_OFFSET)
