"""A large key, second look: one segment of it, judged as the whole key would judge it.

Three kinds of checks ask three kinds of neighbours of a record:

- *by place* (what stands at its offset, who went where from there): a segment has all rows of its
  offsets, and a step leads to it from a row of a piece that it reads anyway, or from one that was
  carried into that piece. A step from below the segment has the delta 1 only if it leads from the
  last record below it to its first one; one from above leads back;
- *by value* (was it sent, read, appended twice): a segment can tell only if all rows of the value
  have their homes in it. So it answers with the ranges that its values lie in. Values in ranges of
  two segments are *shared* (`key_plan.shared_values`): these segments are judged again without
  them, and the rows of shared values of all segments are exchanged by a hash of the value and
  judged together, by the same kernels. All other values occur in one segment alone;
- *of the whole key* (the bound, spans, final reads): `KeySummary`.

So each row is judged with all the rows that its check compares it with, and with no others of any
consequence: the answers are those of the whole key. Values of one producer ascend, so that its
ranges in two segments touch at most where they meet, at a send that crashed; where values have no
such order, all of them are shared, which is slower, and exact.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.data_plane.key_log import KeyLog, log_of_rows
from fencepost.checkers.data_plane.key_summary import KeySummary, Spans
from fencepost.checkers.data_plane.large.plan import KeySegment
from fencepost.checkers.data_plane.large.survey import read_homes, send_homes
from fencepost.checkers.data_plane.log import Log
from fencepost.checkers.data_plane.steps import (
    FAR,
    Carried,
    Pairs,
    StepCounts,
    read_steps,
    send_steps,
    steps_with,
)
from fencepost.checkers.rows import UNKNOWN_OFFSET, Rows, joined, split
from fencepost.checkers.setting import Setting

_RANGES_MAX: Final = 4096
_MIXING: Final = np.uint64(0x9E3779B97F4A7C15)
"""An odd number that spreads neighbours over all buckets (Fibonacci hashing; Knuth, TAOCP 6.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceRows:
    """Rows of a key, in the order of the history."""

    records: pa.Table
    """`rows.COLUMNS` of RECORDS."""
    first_row: int
    carried: Carried


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentRows:
    """The rows at home in a segment, and the odd steps to them."""

    sends: Rows
    reads: Rows
    final: NDArray[np.bool_]
    inside: Pairs
    across: Pairs
    sent_back: Pairs
    step_counts: StepCounts
    """The counts of the steps to its rows."""


def segment_rows(pieces: Iterator[PieceRows], segment: KeySegment, setting: Setting) -> SegmentRows:
    """Return the rows of a segment in these pieces; one piece is in memory at a time."""
    parts = [_part(piece, segment, setting) for piece in pieces]
    return SegmentRows(
        sends=joined([part.sends for part in parts]),
        reads=joined([part.reads for part in parts]),
        final=np.concatenate([part.final for part in parts]),
        inside=_joined_pairs([part.inside for part in parts]),
        across=_joined_pairs([part.across for part in parts]),
        sent_back=_joined_pairs([part.sent_back for part in parts]),
        step_counts=StepCounts.summed(part.step_counts for part in parts),
    )


def segment_log(
    key: str, setting: Setting, rows: SegmentRows, *, segment: KeySegment, around: KeySummary
) -> KeyLog:
    """Return the key log of a segment. A delta that only other segments know has the size `FAR`."""
    log = log_of_rows(
        key, setting, sends=rows.sends, reads=rows.reads, final=rows.final, around=around
    )
    inside, across = (
        steps_with(pairs, delta=_delta(log.log, pairs, segment), info_polls=polls)
        for pairs, polls in ((rows.inside, {}), (rows.across, setting.info_polls))
    )
    return replace(
        log,
        inside=inside,
        across=across,
        sent_back=rows.sent_back,
        step_counts=rows.step_counts,
    )


def without_values(log: KeyLog, shared: Spans) -> KeyLog:
    """Return the key log without rows of these values and without steps: for checks by value."""
    reads = ~shared.hold(log.reads.value)
    return log_of_rows(
        log.key,
        log.setting,
        sends=log.sends.take(~shared.hold(log.sends.value)),
        reads=log.reads.take(reads),
        final=log.final[reads],
        around=log.around,
    )


def value_ranges(log: KeyLog) -> Spans:
    """Return ranges with all values of these rows, as narrow as some thousand ranges can be."""
    values = [log.sends.value, log.log.value[~log.entry_sent]]
    if log.unlocated:
        values.append(log.reads.value[log.read_entry < 0])
    ordered = np.sort(np.concatenate(values))
    if not len(ordered):
        return Spans(start=ordered, end=ordered)
    # The numbers are taken as unsigned: two may lie more than half of all numbers apart.
    gap = ordered[1:].view(np.uint64) - ordered[:-1].view(np.uint64)
    cuts = np.flatnonzero(gap > 1)
    if len(cuts) >= _RANGES_MAX:
        widest = np.argpartition(gap[cuts], len(cuts) - _RANGES_MAX + 1)[1 - _RANGES_MAX :]
        cuts = np.sort(cuts[widest])
    return Spans(start=ordered[np.append(0, cuts + 1)], end=ordered[np.append(cuts, -1)])


def shares(rows: SegmentRows, shared: Spans, *, buckets: int) -> Iterator[tuple[int, SegmentRows]]:
    """Yield the rows of shared values, by bucket; they have no steps."""
    sends = np.flatnonzero(shared.hold(rows.sends.value))
    reads = np.flatnonzero(shared.hold(rows.reads.value))
    sent_to = _bucket(rows.sends.value[sends], buckets=buckets)
    read_to = _bucket(rows.reads.value[reads], buckets=buckets)
    nothing = rows.inside.where(np.empty(0, dtype=np.int64))
    for bucket in np.union1d(sent_to, read_to).tolist():
        mine = reads[read_to == bucket]
        yield (
            bucket,
            SegmentRows(
                sends=rows.sends.take(sends[sent_to == bucket]),
                reads=rows.reads.take(mine),
                final=rows.final[mine],
                inside=nothing,
                across=nothing,
                sent_back=nothing,
                step_counts=StepCounts.summed(()),
            ),
        )


def log_of_shared(
    key: str, setting: Setting, parts: Sequence[SegmentRows], *, around: KeySummary
) -> KeyLog:
    """Return the key log of all rows of some shared values: for checks by value."""
    sends = joined([part.sends for part in parts])
    reads = joined([part.reads for part in parts])
    final = np.concatenate([part.final for part in parts])
    order = np.argsort(reads.row)
    return log_of_rows(
        key,
        setting,
        sends=sends.take(np.argsort(sends.row)),
        reads=reads.take(order),
        final=final[order],
        around=around,
    )


def _part(piece: PieceRows, segment: KeySegment, setting: Setting) -> SegmentRows:
    sends, reads, final = split(piece.records, first_row=piece.first_row)
    here = (segment.start, segment.end)
    steps = read_steps(
        reads,
        final=final,
        carried=piece.carried,
        info_polls=setting.info_polls,
        counted=here,
    )
    sent = send_steps(sends, carried=piece.carried, counted=here)
    # A send whose home lies before the piece and of which nothing was carried is at home at 0.
    home = np.maximum(send_homes(sends, carried=piece.carried), 0)
    read = _within(read_homes(reads), segment)
    return SegmentRows(
        sends=sends.kept(_within(home, segment)),
        reads=reads.kept(read),
        final=final[read],
        inside=steps.inside.where(_within(steps.inside.after.offset, segment)),
        across=steps.across.where(_within(steps.across.after.offset, segment)),
        sent_back=sent.back.where(_within(sent.back.after.offset, segment)),
        step_counts=StepCounts(
            inside=steps.inside_count, across=steps.across_count, sends=sent.count
        ),
    )


def _within(home: NDArray[np.int64], segment: KeySegment) -> NDArray[np.int64]:
    return np.flatnonzero((home >= segment.start) & (home < segment.end))


def _joined_pairs(parts: Sequence[Pairs]) -> Pairs:
    return Pairs(
        before=joined([part.before for part in parts]),
        after=joined([part.after for part in parts]),
    )


def _delta(log: Log, pairs: Pairs, segment: KeySegment) -> NDArray[np.int64]:
    """Return the difference of the positions, as far as segment and surroundings know it."""
    before, after = pairs.before.offset, pairs.after.offset
    delta = np.where(before < after, FAR, -FAR)
    here = (before >= segment.start) & (before < segment.end)
    delta[here] = log.positions(after[here]) - log.positions(before[here])
    if segment.last_before != UNKNOWN_OFFSET and len(log):
        delta[(before == segment.last_before) & (after == log.offset[0])] = 1
    return delta


def _bucket(value: NDArray[np.int64], *, buckets: int) -> NDArray[np.int64]:
    mixed = (value.view(np.uint64) * _MIXING) >> np.uint64(32)
    return (mixed % np.uint64(buckets)).astype(np.int64)
