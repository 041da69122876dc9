"""Open histories on Spark: every key judged, large ones in slabs, and no key able to cost another.

Spark plans and collects; the rows stay in the tasks. Small keys are judged where they are read.
A large key of a versioned register or a log is summed up slab by slab, the summaries are put
together here (`conclusion`), and slabs whose entry that changes are asked again.

A task that dies takes its job along. Then the pieces are halved and each half has a job of its own,
down to the one piece, and in it down to the one key, that dies again: that one is unknown.
"""

import logging
import pickle
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.finding_rows import FINDINGS, findings_table, found_row, unknown_row
from checkers.linearizability.conclusion import Conclusion, Run, concluded, entries
from checkers.linearizability.kernels import KERNELS, KeyKernel
from checkers.linearizability.model_files import KeyGroups, Outline, keys_of_group
from checkers.linearizability.slabs import SLAB_ROWS, cuts
from checkers.linearizability.tasks import ANSWERS, Keys, Piece, Search, Sum, Tasks, Verify
from checkers.linearizability.versioned import NAME, VERSIONED, found_of, witnesses_of
from checkers.linearizability.witnesses import merged
from checkers.runner.tables import JobError, byte_count, collected, task_count
from history.failure import HarnessError
from history.models import Model

__all__ = ["Sweep"]

_LOG: Final = logging.getLogger(__name__)
_KEY_SECONDS_MAX: Final = 60.0
_KEY_SHARE: Final = 0.25
"""Of the budget of a job, for a key that is searched: others of its task want to be judged, too."""
_TASKS_A_CORE: Final = 4
"""Where a kernel's time follows from its rows. A task costs a tenth of a second, as much as judging
a million operations; a few a core are enough for cores that are not equally fast."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    content: Any
    unknown: str
    """Why there is no content, or nothing."""
    seconds: float


@dataclass(slots=True, kw_only=True)
class Sweep:
    """A judgement of all keys of these files."""

    spark: SparkSession
    model: Model
    outlines: Sequence[Outline]
    budget_s: float
    """Of one Spark job."""
    slab_rows: int = SLAB_ROWS
    kernels: Mapping[Model, KeyKernel] = field(default_factory=lambda: KERNELS)
    unreadable: dict[str, None] = field(default_factory=dict)
    """Why some files could not be read, or are not what was sealed."""

    def findings(self) -> pa.Table:
        """FINDINGS, a row a key; `unreadable` is complete afterwards."""
        pieces: list[Piece] = [Verify(file=one.file) for one in self.outlines if one.file.digest]
        slabs: dict[str, list[Sum]] = {}
        for one in self.outlines:
            for groups in one.keys:
                if self._is_large(groups):
                    assert groups.key is not None
                    slabs[groups.key] = [
                        Sum(file=one.file, key=groups.key, cut=cut)
                        for cut in cuts(groups.parts, rows=self.slab_rows)
                    ]
                else:
                    pieces.append(Keys(file=one.file, groups=groups))
        # The largest first: the last tasks to end are short ones.
        pieces.sort(key=_row_count, reverse=True)
        first = [piece for mine in slabs.values() for piece in mine]
        answers = self._answers([*first, *pieces])
        rows = [
            row
            for piece, answer in zip(pieces, answers[len(first) :], strict=True)
            for row in self._rows(piece, answer)
        ]
        of_slabs = dict(zip(first, answers, strict=False))
        rows += [
            self._of_slabs(key, mine, [of_slabs[piece] for piece in mine])
            for key, mine in slabs.items()
        ]
        return findings_table([row | {"path": NAME} for row in rows]).cast(FINDINGS)

    def _is_large(self, groups: KeyGroups) -> bool:
        one_key = groups.key is not None and len(groups.parts) > 1
        return one_key and self.model in VERSIONED and groups.row_count > self.slab_rows

    def _rows(self, piece: Piece, answer: _Answer) -> Iterator[dict[str, Any]]:
        if answer.unknown:
            self.unreadable[answer.unknown] = None
        elif isinstance(piece, Keys):
            yield from answer.content

    def _of_slabs(
        self, key: str, slabs: Sequence[Sum], answers: Sequence[_Answer]
    ) -> dict[str, Any]:
        """The row of FINDINGS of a key in slabs."""
        seconds = sum(answer.seconds for answer in answers)
        unknown = next((answer.unknown for answer in answers if answer.unknown), "")
        runs = [] if unknown else [Run.first(answer.content) for answer in answers]
        while not unknown and (asked := entries(runs)):
            again = [replace(slabs[place], entry=entry) for place, entry in asked.items()]
            for place, piece, answer in zip(asked, again, self._answers(again), strict=True):
                seconds += answer.seconds
                unknown = unknown or answer.unknown
                if not answer.unknown:
                    runs[place] = runs[place].again(answer.content, piece.entry)
        if unknown:
            return unknown_row(NAME, f"{key}: {unknown}", seconds=seconds) | {"key": key}
        conclusion = concluded([run.summary for run in runs])
        found = found_of(key, conclusion, self.model, sighted=self._sighted(slabs, conclusion))
        return found_row(NAME, found) | {"key": key, "seconds": seconds}

    def _sighted(self, slabs: Sequence[Sum], conclusion: Conclusion) -> Mapping[Any, Any]:
        witnesses = witnesses_of(conclusion)
        if not witnesses:
            return {}
        groups = sorted({group for slab in slabs for group in slab.cut.groups})
        searches = [
            Search(file=slabs[0].file, key=slabs[0].key, group=group, witnesses=witnesses)
            for group in groups
        ]
        # What could not be read again is missing from the proofs; the verdict does not rest on it.
        found = [one for one in self._answers(searches) if not one.unknown]
        return merged(part for answer in found for part in answer.content)

    def _answers(self, pieces: Sequence[Piece]) -> list[_Answer]:
        """The answers of these pieces, in their order."""
        if not pieces:
            return []
        try:
            rows = self._collected(pieces)
        except JobError as error:
            return self._apart(pieces, error)
        found = {
            row["piece"]: _Answer(
                content=None if row["unknown"] else pickle.loads(row["answer"]),  # noqa: S301  # of our own tasks
                unknown=row["unknown"] or "",
                seconds=row["seconds"],
            )
            for row in rows
        }
        silent = _Answer(content=None, unknown="a task did not answer", seconds=0.0)
        return [found.get(place, silent) for place in range(len(pieces))]

    def _collected(self, pieces: Sequence[Piece]) -> list[dict[str, Any]]:
        bytes_in_all = sum(byte_count(file) for file in {piece.file for piece in pieces})
        count = task_count(self.spark, len(pieces), bytes_in_all=bytes_in_all)
        if self.model in VERSIONED:
            count = min(count, _TASKS_A_CORE * self.spark.sparkContext.defaultParallelism)
        # A task takes every nth, so that what is large is dealt out first.
        order = [place for first in range(count) for place in range(first, len(pieces), count)]
        seconds = min(_KEY_SECONDS_MAX, _KEY_SHARE * self.budget_s)
        dealt = tuple(pieces[place] for place in order)
        tasks = Tasks(dealt, self.model, seconds, self.kernels)
        frame = self.spark.range(0, len(pieces), 1, count).mapInArrow(
            tasks, from_arrow_schema(ANSWERS)
        )
        rows = collected(frame, schema=ANSWERS, budget_s=self.budget_s).to_pylist()
        return [row | {"piece": order[row["piece"]]} for row in rows]

    def _apart(self, pieces: Sequence[Piece], error: JobError) -> list[_Answer]:
        """The answers of pieces whose job died, by halves."""
        if len(pieces) > 1:
            _LOG.warning("a job of %s pieces of work died (%s); halving it", len(pieces), error)
            half = len(pieces) // 2
            return [*self._answers(pieces[:half]), *self._answers(pieces[half:])]
        (piece,) = pieces
        if isinstance(piece, Keys):
            return [self._keys_apart(piece, error)]
        return [_Answer(content=None, unknown=f"its job died: {error}", seconds=0.0)]

    def _keys_apart(self, piece: Keys, error: JobError) -> _Answer:
        names = _names(piece)
        if len(names) == 1:
            row = unknown_row(NAME, f"{names[0]}: its job died: {error}", seconds=0.0)
            return _Answer(content=[row | {"key": names[0]}], unknown="", seconds=0.0)
        middle = piece.first + len(names) // 2
        halves = [
            replace(piece, end=middle),
            replace(piece, first=middle, end=piece.first + len(names)),
        ]
        # One job each: that one of them dies is known.
        answers = [answer for half in halves for answer in self._answers([half])]
        unknown = "; ".join(dict.fromkeys(one.unknown for one in answers if one.unknown))
        content = [row for one in answers if not one.unknown for row in one.content]
        if unknown:
            self.unreadable[unknown] = None
        return _Answer(content=content, unknown="", seconds=sum(one.seconds for one in answers))


def _row_count(piece: Piece) -> int:
    return piece.groups.row_count if isinstance(piece, Keys) else 0


def _names(piece: Keys) -> list[str]:
    """The keys of a piece; of a row group with several, only the column of the keys is read."""
    if piece.groups.key is not None:
        return [piece.groups.key]
    try:
        several = keys_of_group(piece.file, piece.groups.parts[0].group, ["key"])
        return [key for key, _ in several][piece.first : piece.end]
    except HarnessError:
        return ["(keys that cannot be read)"]
