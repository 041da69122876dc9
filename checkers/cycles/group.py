"""The checks of list-append histories, as a group of the checker: up to three passes (`scan`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from checkers.anomaly import ANOMALIES
from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.cycles.answers import Tally, answered
from checkers.cycles.cycles import Cycles, cycles_of
from checkers.cycles.edges import joined, merged
from checkers.cycles.entries import CYCLE, LIST_ENTRIES
from checkers.cycles.graph import graph_of
from checkers.cycles.judgement import spelled_cycle, taking_part
from checkers.cycles.levels import promised
from checkers.cycles.scan import Part, Summary, reasons_of, segment_parts, summaries_of
from checkers.runner.tables import JobError, cluster_file, file_frame, row_count
from checkers.verdict import CheckResult
from history.models import Isolation
from history.schema import RECORD_BUCKET_COUNT

__all__ = ["CYCLES_GROUP"]

_NONE_READ: Final = "no ok transaction read any list: there is nothing to judge by"
_WHOLE_STEPS_MAX: Final = 4_000_000
"""Of a history whose edges are all sent at once: some 150 MB of them."""
_NO_CYCLES: Final = Cycles(spelled=(), unspelled={})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    frame: DataFrame
    verified: DataFrame
    """The same, not to be verified again."""
    whole: bool
    """The edges of all of them fit into the driver."""
    paths: tuple[str, ...]
    budget_s: float
    promise: Isolation


@dataclass(slots=True)
class _Found:
    """What the passes found, and why it may not be all."""

    tallies: dict[str, Tally]
    doubts: list[str]
    figures: dict[str, float]


def _answer(question: Question) -> GroupAnswers:
    started = perf_counter()
    files = _files(question)
    tallies = {entry.name: Tally() for entry in (CYCLE, *LIST_ENTRIES)}
    found = _Found(tallies=tallies, doubts=[], figures={})
    try:
        _judge(files, found)
    except JobError as error:
        found.doubts.append(f"its job died: {error}")
    seconds = perf_counter() - started
    results: list[CheckResult] = []
    tables = [ANOMALIES.empty_table()]
    for name in question.checks:
        result, table = answered(
            name,
            found.tallies[name].counted(files.promise),
            doubts=found.doubts,
            figures=found.figures if name == CYCLE.name else {},
            seconds=seconds if name == CYCLE.name else 0.0,
        )
        results.append(result)
        tables.append(table)
    return GroupAnswers(results=tuple(results), anomalies=pa.concat_tables(tables))


def _files(question: Question) -> _Files:
    sealed = [
        cluster_file(question.run, question.manifest, "micro_operations", bucket=bucket)
        for bucket in range(RECORD_BUCKET_COUNT)
    ]
    return _Files(
        frame=file_frame(question.spark, sealed),
        verified=file_frame(question.spark, [replace(file, digest="") for file in sealed]),
        whole=sum(row_count(file) or 0 for file in sealed) <= _WHOLE_STEPS_MAX,
        paths=tuple(file.path for file in sealed),
        budget_s=question.budget_s,
        promise=promised(question.manifest.isolation),
    )


def _judge(files: _Files, found: _Found) -> None:
    """Fill in `found`, pass by pass. Raises JobError if a job dies."""
    scan = summaries_of(files.frame, whole=files.whole, paths=files.paths, budget_s=files.budget_s)
    summaries: Sequence[Summary] = scan.contents
    found.doubts += scan.unreadable
    found.doubts += [doubt for summary in summaries for doubt in summary.doubts]
    found.doubts += _missing(summaries)
    for summary in summaries:
        for kind in summary.oddities:
            found.tallies[kind.check].add_kind(kind)
    found.tallies[CYCLE.name].cases = _committed_count(summaries, promise=files.promise)
    segments = merged([summary.spans for summary in summaries])
    found.figures |= {
        "transaction_count": sum(summary.nodes for summary in summaries),
        "key_count": sum(summary.keys for summary in summaries),
        "segment_count": len(segments),
    }
    if not len(segments):
        return
    cycles = _cycles(files, segments, summaries, found)
    links = list({link for cycle in cycles.spelled for link in cycle.links})
    reasons = {}
    if links:
        reasons = reasons_of(files.verified, links, paths=files.paths, budget_s=files.budget_s)
    spelled = [spelled_cycle(cycle, reasons) for cycle in cycles.spelled]
    found.tallies[CYCLE.name].add(spelled, cycles.unspelled)


def _committed_count(summaries: Sequence[Summary], *, promise: Isolation) -> int:
    """Transactions that took place, as far as anybody can tell (`judgement.taking_part`)."""
    acknowledged = sum(summary.acknowledged for summary in summaries)
    if promise is Isolation.READ_UNCOMMITTED or not summaries:
        return acknowledged
    return acknowledged + len(np.unique(np.concatenate([one.observed for one in summaries])))


def _cycles(
    files: _Files, segments: NDArray[np.int64], summaries: Sequence[Summary], found: _Found
) -> Cycles:
    parts = _parts(files, segments, summaries, found)
    if not parts:
        return _NO_CYCLES
    observed = np.concatenate([summary.observed for summary in summaries])
    nodes = taking_part(
        np.concatenate([part.nodes for part in parts]), observed, promise=files.promise
    )
    ends = joined(part.ends for part in parts)
    found.figures |= {"judged_transaction_count": len(nodes), "judged_edge_count": len(ends)}
    ordered = bool(np.all(np.diff(nodes["call_ns"]) >= 0))
    if not ordered:
        found.doubts.append("transactions are not numbered in the order of their calls")
    return cycles_of(graph_of(nodes, ends, timed=ordered))


def _parts(
    files: _Files, segments: NDArray[np.int64], summaries: Sequence[Summary], found: _Found
) -> Sequence[Part]:
    """What is inside the segments: of what the first pass sent, or by a pass of its own."""
    if files.whole:
        return [one.whole.inside(segments) for one in summaries if one.whole is not None]
    scan = segment_parts(files.verified, segments, paths=files.paths, budget_s=files.budget_s)
    found.doubts += [reason for reason in scan.unreadable if reason not in found.doubts]
    return scan.contents


def _missing(summaries: Sequence[Summary]) -> list[str]:
    """Why the history cannot be whole, or is none to judge by."""
    nodes = sum(summary.nodes for summary in summaries)
    last = max((summary.last for summary in summaries), default=-1)
    total = sum(summary.node_sum for summary in summaries)
    found = []
    if nodes != last + 1 or total != last * (last + 1) // 2:
        found.append(
            f"the first steps of {nodes} transactions are there, and the last one is number {last}"
        )
    if not any(summary.reads for summary in summaries):
        found.append(_NONE_READ)
    return found


CYCLES_GROUP: Final = CheckGroup(name="cycles", entries=(CYCLE, *LIST_ENTRIES), answer=_answer)
