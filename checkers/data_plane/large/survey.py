"""A large key, first look: each piece of its rows in little, and from all of them how to cut it.

The rows of a key come in *pieces*: runs of its rows in the order of the history, such as the row
groups of its file. To be judged it is cut into *segments*: ranges of offsets, whose rows lie in one
or a few pieces each as long as all clients work near the end of the log; a final read adds a few.

Every row has one *home*, an offset, and so one segment: its own offset; of a send that knows none,
that of the last acknowledged send of its process before it (or 0), because values that were sent
one after the other are then judged together; of a read that knows none, 0.

Rows are counted by *blocks* of offsets, and a segment is some blocks in a row. So no segment is
smaller than a block: what ten thousand readers read of 4096 offsets is judged at once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.data_plane.key_summary import (
    Reach,
    Stretches,
    bound_of,
    reaches_of,
    reader_of,
    stretches_read,
    times_given_up,
)
from fencepost.checkers.data_plane.steps import Carried, by_process, read_steps, send_steps
from fencepost.checkers.rows import INFO, OK, UNKNOWN_OFFSET, Rows, joined, split
from fencepost.checkers.setting import Setting

_ROW_BITS: Final = 40
"""A key has at most 2 ** 40 rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Grain:
    """The granularity at which a key is cut."""

    block_offsets: int = 1 << 12
    segment_rows: int = 1 << 20
    """The most rows of a segment, if the blocks allow it: some 135 bytes each in a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """Blocks of offsets that some rows are at home in, by number."""

    number: NDArray[np.int64]
    row_count: NDArray[np.int64]
    highest: NDArray[np.int64]
    """The highest offset at which a read or an acknowledgement stands; `UNKNOWN_OFFSET`: none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceSurvey:
    """The summary of one piece."""

    row_count: int
    first: tuple[int, int]
    """Operation and place in it, of the first row."""
    last: tuple[int, int]
    """The operation and place of the last row."""
    disorder: bool
    """The rows are not in the order of the history."""
    blocks: Blocks
    homeless: Mapping[int, int]
    """The number of sends whose home is with a send before this piece, by process."""
    carried: Carried
    """The last rows of its chains."""
    bound: int
    reader: int
    stretches: Stretches
    gave_up_ns: Mapping[int, int]
    reaches: tuple[Reach, ...]
    undecided: Rows
    """Info sends of which their own row and the reads of its value may not tell whether they have
    happened: they know their offsets, or their operation has several rows."""


def survey(
    records: pa.Table,
    *,
    first_row: int,
    setting: Setting,
    grain: Grain,
) -> PieceSurvey:
    """Survey a piece: `rows.COLUMNS` of RECORDS, at least one row, from row `first_row` on."""
    info_polls = setting.info_polls
    operation = records.column("operation").to_numpy()
    place = records.column("position").to_numpy()
    step = np.diff(operation)
    sends, reads, final = split(records, first_row=first_row)
    nothing = Carried.nothing()
    steps = read_steps(reads, final=final, carried=nothing, info_polls=info_polls)
    last_sends = send_steps(sends, carried=nothing).last
    home = send_homes(sends, carried=nothing)
    homeless, count = np.unique(sends.process[home == UNKNOWN_OFFSET], return_counts=True)
    bound = bound_of(reads)
    return PieceSurvey(
        row_count=len(operation),
        first=(int(operation[0]), int(place[0])),
        last=(int(operation[-1]), int(place[-1])),
        disorder=bool(np.any((step < 0) | ((step == 0) & (np.diff(place) <= 0)))),
        blocks=_blocks(sends, reads, home[home != UNKNOWN_OFFSET], grain),
        homeless=dict(zip(homeless.tolist(), count.tolist(), strict=True)),
        carried=Carried(polls=steps.polls, finals=steps.finals, sends=last_sends),
        bound=bound,
        reader=reader_of(bound, reads),
        stretches=stretches_read(reads, final=final, info_polls=info_polls),
        gave_up_ns=times_given_up(sends),
        reaches=reaches_of(reads, final=final, readers=setting.readers, info_polls=info_polls),
        undecided=_undecided(sends, edges=(int(operation[0]), int(operation[-1]))),
    )


def send_homes(sends: Rows, *, carried: Carried) -> NDArray[np.int64]:
    """Return the home of each send of a piece; `UNKNOWN_OFFSET` where it lies before all of them.

    `carried`: of the sends before the piece.
    """
    lost = np.flatnonzero(sends.offset == UNKNOWN_OFFSET)
    if not len(lost):
        return sends.offset
    located = np.flatnonzero((sends.outcome == OK) & (sends.offset != UNKNOWN_OFFSET))
    anchors = joined([carried.sends, sends.take(located)])
    anchors = anchors.take(by_process(anchors.process))
    processes = np.unique(anchors.process)
    keys = _chained(anchors, processes)
    place = np.searchsorted(keys, _chained(sends.take(lost), processes)) - 1
    known = place >= 0
    known[known] = anchors.process[place[known]] == sends.process[lost[known]]
    home = sends.offset.copy()
    home[lost[known]] = anchors.offset[place[known]]
    return home


def read_homes(reads: Rows) -> NDArray[np.int64]:
    """Return the home of each read."""
    return np.maximum(reads.offset, 0)


def _chained(rows: Rows, processes: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return numbers that are in the order of processes, and then of rows."""
    code = np.searchsorted(processes, rows.process).astype(np.int64)
    return (code << _ROW_BITS) | rows.row


def _blocks(sends: Rows, reads: Rows, homes: NDArray[np.int64], grain: Grain) -> Blocks:
    sent = sends.offset[sends.ok & (sends.offset != UNKNOWN_OFFSET)]
    at_home = np.concatenate([homes, read_homes(reads)]) // grain.block_offsets
    sure = np.concatenate([sent, reads.offset[reads.offset != UNKNOWN_OFFSET]])
    first = int(at_home.min(initial=np.iinfo(np.int64).max))
    span = int(at_home.max(initial=0)) - first + 1
    if span > len(at_home):
        number, of_row = np.unique(at_home, return_inverse=True)
        of_sure = np.searchsorted(number, sure // grain.block_offsets)
    else:
        number = np.arange(first, first + span)
        of_row, of_sure = at_home - first, sure // grain.block_offsets - first
    row_count = np.bincount(of_row, minlength=len(number))
    highest = np.full(len(number), UNKNOWN_OFFSET, dtype=np.int64)
    np.maximum.at(highest, of_sure, sure)
    used = np.flatnonzero(row_count)
    return Blocks(number=number[used], row_count=row_count[used], highest=highest[used])


def _undecided(sends: Rows, *, edges: tuple[int, int]) -> Rows:
    """An operation at the edge of the piece may go on beyond it."""
    same = sends.operation[1:] == sends.operation[:-1]
    several = np.append(same, False) | np.append(False, same)
    several = several[: len(sends)] | np.isin(sends.operation, edges)
    info = sends.outcome == INFO
    return sends.take(np.flatnonzero(info & (several | (sends.offset != UNKNOWN_OFFSET))))
