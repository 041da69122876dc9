"""List-append histories: the work of the tasks on their files, and their answers.

A task reads a file row group by row group; in memory are one row group, or one key if that is
larger. Three kinds of passes, none of which sends a history to the driver:

1. a summary of the lists (`RowGroupSummary`): list anomalies, counts, and how far back edges reach;
2. the edges and transactions inside the segments that these spans make (`RowGroupContent`); where
   transactions overlap all the time that is most of them, at some 20 bytes an edge;
3. if there are cycles, why their edges hold.

If the driver can hold all edges of a history, the first pass sends them all, and there is no second
one. A later pass reads what the first one has verified, and infers again what that one did, but for
the list anomalies: that takes less time than to keep it.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.check_group import Question
from fencepost.checkers.cycles.edges import EdgeEnds, ends_of, segments_of, within
from fencepost.checkers.cycles.inference import Inferred, Nodes, inferred
from fencepost.checkers.cycles.judgement import Reason, reasons_in
from fencepost.checkers.cycles.shortest import CycleEdge
from fencepost.checkers.cycles.steps import COLUMNS
from fencepost.checkers.cycles.transaction_anomaly import TransactionAnomalies
from fencepost.checkers.rows import OK
from fencepost.checkers.runner.tables import SealedFile, opened
from fencepost.checkers.runner.tasks import TaskResult
from fencepost.history.failure import HarnessError


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupSummary:
    """The summary of one row group."""

    keys: int
    reads: int
    nodes: int
    """Transactions whose first step is here …"""
    node_sum: int
    """… and the sum of their indices."""
    acknowledged: int
    """The number of these transactions that are ok."""
    last: int
    observed: NDArray[Any]
    spans: NDArray[Any]
    list_anomalies: tuple[TransactionAnomalies, ...]
    doubts: tuple[str, ...]
    whole: "RowGroupContent | None"
    """All transactions and edges, if they were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupContent:
    """The transactions and edges of one row group."""

    nodes: Nodes
    ends: EdgeEnds

    def inside(self, segments: NDArray[Any]) -> "RowGroupContent":
        """Return the part of it that is inside these segments."""
        inside = segments_of(self.nodes["transaction"], segments) >= 0
        return RowGroupContent(nodes=self.nodes[inside], ends=within(self.ends, segments))


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanAnswers:
    """The answers of a pass over all files."""

    contents: tuple[Any, ...]
    unreadable: tuple[str, ...]


def summaries_of(question: Question, files: Sequence[SealedFile], *, whole: bool) -> ScanAnswers:
    """Return a `RowGroupSummary` per row group, with all its edges if `whole`."""
    return passed(question, files, partial(_of_lists, kernel=partial(_summary, whole=whole)))


def segment_parts(
    question: Question, files: Sequence[SealedFile], segments: NDArray[Any]
) -> ScanAnswers:
    """Return a `RowGroupContent` per row group."""
    return passed(question, files, partial(_of_lists, kernel=partial(_part, segments=segments)))


def reasons_of(
    question: Question, files: Sequence[SealedFile], links: Sequence[CycleEdge]
) -> dict[CycleEdge, Reason]:
    """Return why these edges hold."""
    scan = passed(question, files, partial(_of_lists, kernel=partial(_reasons, links=links)))
    return {link: reason for content in scan.contents for link, reason in content.items()}


def whole_keys_in(file: SealedFile) -> Iterator[pa.Table]:
    """Yield the rows of a file, row group by row group, but every key whole.

    Raises HarnessError, naming the file, if it is missing, damaged or of another schema.
    """
    waiting: list[pa.Table] = []
    done: set[str] = set()
    with opened(file, "micro_operations") as parquet:
        for group in range(parquet.num_row_groups):
            table = parquet.read_row_group(group, columns=list(COLUMNS))
            if not table.num_rows:
                continue
            if waiting and waiting[-1]["key"][-1].as_py() != table["key"][0].as_py():
                yield _apart(file, waiting, done)
                waiting = []
            waiting.append(table)
    if waiting:
        yield _apart(file, waiting, done)


def _apart(file: SealedFile, tables: Sequence[pa.Table], done: set[str]) -> pa.Table:
    table = pa.concat_tables(tables).unify_dictionaries()
    keys = set(table["key"].unique().to_pylist())
    if keys & done:
        raise HarnessError(f"{file.path} is not sorted by key: {min(keys & done)} comes twice")
    done |= keys
    return table


def passed(
    question: Question,
    files: Sequence[SealedFile],
    contents: Callable[[SealedFile], Iterable[Any]],
) -> ScanAnswers:
    """Return all contents of all files, file by file."""
    answers = question.each_file(files, _Listed(contents))
    return ScanAnswers(
        contents=tuple(content for answer in answers for content in answer.content or ()),
        unreadable=tuple(_named(answer) for answer in answers if answer.failure),
    )


@dataclass(frozen=True, slots=True)
class _Listed:
    """All contents of a file."""

    contents: Callable[[SealedFile], Iterable[Any]]

    def __call__(self, file: SealedFile) -> list[Any]:
        return list(self.contents(file))


def _named(answer: TaskResult[SealedFile, Any]) -> str:
    """Return why a file was not answered for, with its path."""
    path = answer.task.path
    return answer.failure if path in answer.failure else f"{path}: {answer.failure}"


def _of_lists(file: SealedFile, *, kernel: Callable[[Inferred], Any]) -> Iterator[Any]:
    return (kernel(inferred(table)) for table in whole_keys_in(file))


def _summary(part: Inferred, *, whole: bool) -> RowGroupSummary:
    return RowGroupSummary(
        keys=len(part.names),
        reads=part.reads,
        nodes=len(part.nodes),
        node_sum=int(part.nodes["transaction"].sum()),
        acknowledged=int(np.count_nonzero(part.nodes["outcome"] == OK)),
        last=part.last,
        observed=part.observed,
        spans=part.spans,
        list_anomalies=part.list_anomalies,
        doubts=part.doubts,
        whole=_whole(part) if whole else None,
    )


def _part(part: Inferred, *, segments: NDArray[Any]) -> RowGroupContent:
    return _whole(part).inside(segments)


def _whole(part: Inferred) -> RowGroupContent:
    return RowGroupContent(nodes=part.nodes, ends=ends_of(part.edges))


def _reasons(part: Inferred, *, links: Sequence[CycleEdge]) -> dict[CycleEdge, Reason]:
    return reasons_in(part.edges, part.names, links)
