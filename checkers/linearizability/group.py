"""The checks of open histories of objects, as a group of the checker.

Every key is judged, and no key can cost another its answer. The rows stay in the tasks. Small keys
are judged where they are read. A large key of a versioned register or a log is summed up slab by
slab, the summaries are put together here (`conclusion`), and slabs whose entry that changes are
asked again.

The pieces of a job that died have jobs of their own (`checkers.runner.tasks`), and of a piece that
dies again the keys, by halves, down to the one key that does: that one is unknown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pyarrow as pa

from fencepost.checkers.check_group import CheckGroup, GroupAnswers, Question
from fencepost.checkers.entry import CatalogueEntry, Kind, Nearness
from fencepost.checkers.finding_rows import FINDINGS, findings_table, found_row, unknown_row
from fencepost.checkers.linearizability.conclusion import Conclusion, SlabRun, concluded, entries
from fencepost.checkers.linearizability.kernels import KERNELS, KeyKernel
from fencepost.checkers.linearizability.model_files import (
    KeyGroups,
    Outline,
    keys_of_group,
    outline,
)
from fencepost.checkers.linearizability.slabs import SLAB_ROWS, cuts
from fencepost.checkers.linearizability.tasks import Keys, Piece, PieceWork, Search, Sum, Verify
from fencepost.checkers.linearizability.versioned import NAME, VERSIONED, found_of, witnesses_of
from fencepost.checkers.linearizability.witnesses import merged
from fencepost.checkers.results import FileAnswers, anomalies_found, result_of
from fencepost.checkers.runner.tables import byte_count
from fencepost.checkers.runner.tasks import TaskResult, TaskSession, run_tasks, worth
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.checkers.whole_operations import whole_operations
from fencepost.history.failure import HarnessError
from fencepost.history.models import Model
from fencepost.history.schema import RECORD_BUCKET_COUNT

_TABLE: Final = "model_operations"

WHOLE_HISTORY: Final = CatalogueEntry.of(
    """M0 whole-history: No operation of an open history is missing.

    Over all keys, the least index is 0 and the greatest is one less than the number of operations,
    by the statistics of the files, every one of which could be read. (That a process has one
    operation open at a time is not needed, and not compared.)

    Meaning: Otherwise a value without a recorded write may have been written by a lost operation.
    Case: an operation
    Source: history/schema.py, MODEL_OPERATIONS
    """,
    kind=Kind.ASSUMPTION,
    needs=(_TABLE,),
)

NONLINEARIZABLE: Final = CatalogueEntry.of(
    """M1 nonlinearizable: No order of the operations explains every answer.

    The operations of a key, each at one moment between its call and its return, ends included, are
    compared with what the object of the model does when it is undisturbed (history/models.py).
    Crashed operations took effect at any moment after their call, or never. Versioned registers and
    logs: by the moments at which versions appear, each made once, by somebody, with one value;
    version 0 has none. Others: by a kernel of their own or a search with a budget of time and
    memory a key; a key that exceeds it is unknown.

    Meaning: Clients saw what one object, used by one of them at a time, would never have shown.
    Case: an answer that can be wrong: of a read, of a `cas` that was made or refused, or the
    version or offset of a change
    Source: Herlihy, Wing 1990; Wing, Gong 1993; Gibbons, Korach 1997; Lowe 2017
    """,
    nearness=Nearness.RECORD,
    rests_on=(WHOLE_HISTORY.name,),
    needs=(_TABLE,),
)
_KEY_SECONDS_MAX: Final = 60.0
_KEY_SHARE: Final = 0.25
"""The share of a job's budget for a searched key: the task has other keys to judge."""
_TASKS_A_CORE: Final = 4
"""The tasks per core where a kernel's time follows from its rows. A task costs a tenth of a second,
as much as judging a million operations; a few a core suit cores that are not equally fast.
"""
_Answer = TaskResult[Piece, Any]


def _answer(question: Question) -> GroupAnswers:
    outlines, unreadable = _outlines(question)
    assumed = whole_operations(WHOLE_HISTORY.name, outlines, unreadable)
    sweep = Sweep(
        session=question.session,
        model=Model(question.manifest.model),
        outlines=outlines,
        budget_s=question.budget_s,
        unreadable=dict.fromkeys(unreadable),
    )
    findings = sweep.findings()
    files = FileAnswers(
        record_count=sum(one.row_count for one in outlines),
        unreadable=tuple(sweep.unreadable),
        seconds=0.0,
    )
    # A file that cannot be read says so itself: the keys of the others are judged as they stand.
    broken = assumed.validity is not Validity.VALID and not unreadable
    result = result_of(
        NONLINEARIZABLE,
        findings,
        files=files,
        broken=frozenset((WHOLE_HISTORY.name,) if broken else ()),
        died="",
    )
    results = (assumed, _counted(result))
    return GroupAnswers(
        results=tuple(one for one in results if one.check in question.checks),
        anomalies=anomalies_found(NONLINEARIZABLE.name, findings),
    )


def _outlines(question: Question) -> tuple[list[Outline], list[str]]:
    found, unreadable = [], []
    for bucket in range(RECORD_BUCKET_COUNT):
        file = question.file(_TABLE, bucket=bucket)
        try:
            found.append(outline(file))
        except HarnessError as error:
            unreadable.append(str(error))
    return found, unreadable


def _counted(result: CheckResult) -> CheckResult:
    """Return the result; if some keys have no answer, its reason says how many have one."""
    count, unknown = (int(result.figures[name]) for name in ("keys_count", "keys_unknown_count"))
    if not unknown:
        return result
    checked = f"{count - unknown} of {count} keys checked"
    return replace(result, reason=f"{checked}; {result.reason}")


CHECKS: Final = (
    CheckGroup(name="linearizability", entries=(WHOLE_HISTORY, NONLINEARIZABLE), answer=_answer),
)


@dataclass(slots=True, kw_only=True)
class Sweep:
    """A judgement of all keys of these files."""

    session: TaskSession
    model: Model
    outlines: Sequence[Outline]
    budget_s: float
    """The budget of one job."""
    slab_rows: int = SLAB_ROWS
    kernels: Mapping[Model, KeyKernel] = field(default_factory=lambda: KERNELS)
    unreadable: dict[str, None] = field(default_factory=dict)
    """The reasons why some files could not be read, or are not what was sealed."""

    def findings(self) -> pa.Table:
        """Return FINDINGS, a row a key; `unreadable` is complete afterwards."""
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
        if answer.failure:
            self.unreadable[answer.failure] = None
        elif isinstance(piece, Keys):
            yield from answer.result

    def _of_slabs(
        self, key: str, slabs: Sequence[Sum], answers: Sequence[_Answer]
    ) -> dict[str, Any]:
        """Return the row of FINDINGS of a key in slabs."""
        seconds = sum(answer.seconds for answer in answers)
        unknown = next((answer.failure for answer in answers if answer.failure), "")
        runs = [] if unknown else [SlabRun.first(answer.result) for answer in answers]
        while not unknown and (asked := entries(runs)):
            again = [replace(slabs[place], entry=entry) for place, entry in asked.items()]
            for place, piece, answer in zip(asked, again, self._answers(again), strict=True):
                seconds += answer.seconds
                unknown = unknown or answer.failure
                if not answer.failure:
                    runs[place] = runs[place].again(answer.result, piece.entry)
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
        # Rows that could not be read again are missing from the proofs, not from the verdict.
        found = [one for one in self._answers(searches) if not one.failure]
        return merged(part for answer in found for part in answer.result)

    def _answers(self, pieces: Sequence[Piece]) -> list[_Answer]:
        """Return the answers of these pieces, in their order."""
        size = sum(byte_count(file) for file in {piece.file for piece in pieces})
        workers = worth(self.session, size)
        if self.model in VERSIONED:
            workers = min(workers, _TASKS_A_CORE * self.session.cores)
        seconds = min(_KEY_SECONDS_MAX, _KEY_SHARE * self.budget_s)
        work = PieceWork(self.model, seconds, self.kernels)
        answers = run_tasks(self.session, pieces, work, budget_s=self.budget_s, workers=workers)
        return [
            self._keys_apart(one.task, one) if one.died and isinstance(one.task, Keys) else one
            for one in answers
        ]

    def _keys_apart(self, piece: Keys, answer: _Answer) -> _Answer:
        """Return the answer of keys whose task died, by halves; of one, that it is unknown."""
        names = _names(piece)
        if len(names) == 1:
            row = unknown_row(NAME, f"{names[0]}: {answer.failure}", seconds=0.0)
            return TaskResult(task=piece, content=[row | {"key": names[0]}])
        middle = piece.first + len(names) // 2
        halves = [
            replace(piece, end=middle),
            replace(piece, first=middle, end=piece.first + len(names)),
        ]
        # One job each: that one of them dies is known.
        answers = [one for half in halves for one in self._answers([half])]
        self.unreadable |= {one.failure: None for one in answers if one.failure}
        content = [row for one in answers for row in one.content or ()]
        return TaskResult(task=piece, content=content, seconds=sum(one.seconds for one in answers))


def _row_count(piece: Piece) -> int:
    return piece.groups.row_count if isinstance(piece, Keys) else 0


def _names(piece: Keys) -> list[str]:
    """Return the keys of a piece; of a row group with several, only the key column is read."""
    if piece.groups.key is not None:
        return [piece.groups.key]
    try:
        several = keys_of_group(piece.file, piece.groups.parts[0].group, ["key"])
        return [key for key, _ in several][piece.first : piece.end]
    except HarnessError:
        return ["(keys that cannot be read)"]
