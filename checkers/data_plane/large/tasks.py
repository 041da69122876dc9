"""The tasks on a large key: each reads some of its rows and returns a small answer.

A task that fails leaves its key unknown, and the job goes on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.data_plane.answers import KeyAnswer, answers_of
from fencepost.checkers.data_plane.key_assumptions import KEY_ASSUMPTIONS
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.data_plane.key_summary import KeySummary, Spans
from fencepost.checkers.data_plane.large.jobs import Dealt
from fencepost.checkers.data_plane.large.plan import KeySegment
from fencepost.checkers.data_plane.large.segment import (
    PieceRows,
    SegmentRows,
    log_of_shared,
    segment_log,
    segment_rows,
    shares,
    value_ranges,
    without_values,
)
from fencepost.checkers.data_plane.large.survey import Grain, PieceSurvey, survey
from fencepost.checkers.data_plane.steps import Carried
from fencepost.checkers.membership import is_among
from fencepost.checkers.rows import COLUMNS, split
from fencepost.checkers.runner.table_pieces import Stretch, stretch_rows
from fencepost.checkers.runner.tables import SealedFile
from fencepost.checkers.setting import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPiece:
    """Rows of a large key: where they are."""

    file: SealedFile
    stretch: Stretch
    first_row: int

    def rows(self) -> pa.Table:
        """Return the rows. Raises HarnessError if the file cannot be read."""
        (rows,) = stretch_rows(self.file, [self.stretch], COLUMNS)
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentAnswer:
    """The answer on a segment, or on the rows of some shared values."""

    answers: Mapping[str, KeyAnswer]
    """The answers by check."""
    held: int = 0
    """The number of its offsets that hold records."""
    ranges: Spans | None = None
    """The ranges of its values; None for shared values."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyPiece:
    """A first look at a piece."""

    piece: KeyPiece
    setting: Setting
    grain: Grain

    def __call__(self) -> PieceSurvey:
        """See the class."""
        return survey(
            self.piece.rows(),
            first_row=self.piece.first_row,
            setting=self.setting,
            grain=self.grain,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnedValues:
    """The task that finds which of some values the ok reads of a piece returned."""

    piece: KeyPiece
    values: NDArray[np.int64]

    def __call__(self) -> NDArray[np.int64]:
        """See the class."""
        _, reads, _ = split(self.piece.rows())
        return self.values[is_among(self.values, reads.value[reads.ok])]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentSource:
    """A segment of a large key: where its rows are, and what they are judged with."""

    key: str
    setting: Setting
    around: KeySummary
    segment: KeySegment
    pieces: tuple[KeyPiece, ...]
    carried: tuple[Carried, ...]
    """Into each of the pieces."""

    def rows(self) -> SegmentRows:
        """Return its rows. Raises HarnessError if the file cannot be read."""
        return segment_rows(self._read(), self.segment, self.setting)

    def log(self, rows: SegmentRows) -> KeyLog:
        """Return the key log of its rows."""
        return segment_log(self.key, self.setting, rows, segment=self.segment, around=self.around)

    def _read(self) -> Iterator[PieceRows]:
        tables = stretch_rows(
            self.pieces[0].file, [piece.stretch for piece in self.pieces], COLUMNS
        )
        for piece, carried, records in zip(self.pieces, self.carried, tables, strict=True):
            yield PieceRows(records=records, first_row=piece.first_row, carried=carried)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSegment:
    """The task that judges a segment as if no other segment had its values."""

    source: SegmentSource
    checks: Mapping[str, KeyCheck]

    def __call__(self) -> SegmentAnswer:
        """See the class."""
        started = perf_counter()
        log = self.source.log(self.source.rows())
        return SegmentAnswer(
            answers=answers_of(log, {**KEY_ASSUMPTIONS, **self.checks}),
            held=log.log.held_count,
            ranges=value_ranges(log),
            seconds=perf_counter() - started,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSegmentAgain:
    """The task that judges a segment without its shared values and deals out the rows of these."""

    source: SegmentSource
    checks: Mapping[str, KeyCheck]
    shared: Spans
    first_bucket: int
    buckets: int

    def __call__(self) -> Dealt:
        """See the class."""
        started = perf_counter()
        rows = self.source.rows()
        log = self.source.log(rows)
        rest = without_values(log, self.shared)
        answer = SegmentAnswer(
            answers=answers_of(log, _by_place(self.checks))
            | answers_of(rest, _by_value(self.checks)),
            held=log.log.held_count,
            seconds=perf_counter() - started,
        )
        dealt = shares(rows, self.shared, buckets=self.buckets)
        return answer, [(self.first_bucket + bucket, part) for bucket, part in dealt]


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeShared:
    """The task that runs the checks by value on all rows of shared values, of several keys."""

    keys: tuple[str, ...]
    setting: Setting
    around: tuple[KeySummary, ...]
    """The surroundings of each key."""
    key_of_bucket: tuple[int, ...]
    checks: Mapping[str, KeyCheck]

    def __call__(self, bucket: int, parts: Sequence[SegmentRows]) -> SegmentAnswer:
        """See the class."""
        started, number = perf_counter(), self.key_of_bucket[bucket]
        key, around = self.keys[number], self.around[number]
        log = log_of_shared(key, self.setting, parts, around=around)
        answers = answers_of(log, _by_value(self.checks))
        return SegmentAnswer(answers=answers, seconds=perf_counter() - started)


@dataclass(frozen=True, slots=True, kw_only=True)
class Positions:
    """The positions that some offsets of a segment have in it."""

    source: SegmentSource
    offsets: NDArray[np.int64]

    def __call__(self) -> NDArray[np.int64]:
        """See the class."""
        return self.source.log(self.source.rows()).log.positions(self.offsets)


def _by_place(checks: Mapping[str, KeyCheck]) -> dict[str, KeyCheck]:
    return {name: check for name, check in checks.items() if check.by_place}


def _by_value(checks: Mapping[str, KeyCheck]) -> dict[str, KeyCheck]:
    return {
        name: check for name, check in {**KEY_ASSUMPTIONS, **checks}.items() if not check.by_place
    }
