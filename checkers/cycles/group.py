"""The checks of list-append histories, as a group of the checker: up to three passes (`scan`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fencepost.checkers.check_group import CheckGroup, GroupAnswers, Question
from fencepost.checkers.cycles.answers import CheckTally, answered
from fencepost.checkers.cycles.cycles import Cycles, cycles_of
from fencepost.checkers.cycles.edges import joined, merged
from fencepost.checkers.cycles.graph import graph_of
from fencepost.checkers.cycles.judgement import spelled_cycle, taking_part
from fencepost.checkers.cycles.levels import promised
from fencepost.checkers.cycles.scan import (
    RowGroupContent,
    RowGroupSummary,
    reasons_of,
    segment_parts,
    summaries_of,
)
from fencepost.checkers.entry import CatalogueEntry, Nearness, Strength
from fencepost.checkers.runner.tables import SealedFile, row_count
from fencepost.history.models import Isolation
from fencepost.history.schema import RECORD_BUCKET_COUNT

_WEAKER: Final = "the transactions were promised a weaker isolation than the one that forbids it"
_NEEDS: Final = ("micro_operations",)

CYCLE: Final = CatalogueEntry.of(
    """D14a dependency-cycle: Transactions precede each other in a circle.

    Nodes are the transactions that took place; edges are ww (it appended the next element), wr (it
    read what the other appended), rw (it did not see what the other appended), the order of a
    process, and real time (one returned before the other was called). Each strongly connected
    component that holds none of a graph with fewer kinds of edges is one anomaly: G0, G1c,
    G-single, G-nonadjacent or G2-item, with -process or -realtime where it needs these. Forbidden
    by read-uncommitted (G0), read-committed (G1c), snapshot (G-single, G-nonadjacent), serializable
    (G2-item), strict-serializable (all with -process or -realtime).

    Meaning: No order of the transactions, one after the other, explains what they saw.
    Case: a transaction that was acknowledged, or of which an acknowledged one read
    Source: Adya, Liskov, O'Neil 2000; Kingsbury, Alvaro 2020 (Elle); Cerone, Gotsman 2018 for
    snapshot
    """,
    nearness=Nearness.RECORD,
    strength=Strength.ALLOWED_IF,
    allowed_if=_WEAKER,
    needs=_NEEDS,
)

LIST_ENTRIES: Final = tuple(
    CatalogueEntry.of(
        text,
        nearness=Nearness.RECORD,
        strength=Strength.ALLOWED_IF,
        allowed_if=_WEAKER,
        needs=_NEEDS,
    )
    for text in (
        """D14b aborted-element: An element of a failed transaction was read.

        An ok transaction read an element that a transaction which failed appended. Forbidden by
        read-committed.

        Meaning: Somebody acted on what was undone.
        Case: an element that a failed transaction appended to a list that was read
        Source: Adya, Liskov, O'Neil 2000, G1a; Kingsbury, Alvaro 2020 (Elle)
        """,
        """D14c garbage-element: An element was read that was never appended.

        No transaction of whatever outcome appended it to that key. Forbidden by every isolation.

        Meaning: Data came out of nowhere, or into the wrong list.
        Case: an element of a key's longest read, or of one that is no prefix of it
        Source: Kingsbury, Alvaro 2020 (Elle)
        """,
        """D14d duplicate-element: A list has an element twice.

        A read has one value twice, which was appended once. Forbidden by every isolation.

        Meaning: An append took effect twice, as a retry may do.
        Case: an element of a key's longest read, or of one that is no prefix of it
        Source: Kingsbury, Alvaro 2020 (Elle)
        """,
        """D14e incompatible-order: Two reads of a list contradict each other.

        Neither of two reads of a key is a prefix of the other; or what one transaction appended to
        it is not there in its order. Forbidden by every isolation, where the elements at which the
        reads differ are both of transactions that were acknowledged; else by read-committed.

        Meaning: There is no one history of the list: replicas diverged, or appends were lost.
        Case: a read beside the longest one of its key, or two neighbouring appends of a transaction
        of which the later one was read
        Source: Kingsbury, Alvaro 2020 (Elle)
        """,
        """D14f intermediate-read: The middle of a transaction was read.

        The last element of a read is one after which its transaction appended another one to the
        same key. Forbidden by read-committed.

        Meaning: Somebody acted on a state that was never meant to be seen.
        Case: a read that ends with an element of another transaction, which appended several
        Source: Adya, Liskov, O'Neil 2000, G1b; Kingsbury, Alvaro 2020 (Elle)
        """,
        """D14g dirty-update: A transaction was committed on top of one that failed.

        In a read, an element of a failed transaction comes before one of an acknowledged one.
        Forbidden by read-committed.

        Meaning: What was undone lives on in what was built on it.
        Case: an element that a failed transaction appended to a list that was read
        Source: Kingsbury, Alvaro 2020 (Elle)
        """,
        """D14h internal-inconsistency: A transaction contradicts itself.

        A read does not show what the transaction's read of the key before showed and what it
        appended since, or shows what it appends later. Forbidden by snapshot; by every isolation
        where its own appends are missing or early.

        Meaning: Within a transaction, reads cannot be relied upon.
        Case: a read of a list that its transaction reads or appends to elsewhere, too
        Source: Kingsbury, Alvaro 2020 (Elle); Cerone, Gotsman 2018, axiom Int
        """,
        """D14i lost-update: Several transactions updated the same version.

        Several acknowledged transactions read the whole of what was ever read of a key and then
        appended to it. Forbidden by snapshot. (Where the appends were read, it is a
        dependency-cycle.)

        Meaning: One of them overwrote the others without having seen them.
        Case: a transaction that read a list and appended to it afterwards
        Source: Adya, Liskov, O'Neil 2000; Berenson et al. 1995, P4
        """,
    )
)

_NONE_READ: Final = "no ok transaction read any list: there is nothing to judge by"
_WHOLE_STEPS_MAX: Final = 4_000_000
"""The most steps of a history whose edges are all sent at once: some 150 MB of edges."""
_NO_CYCLES: Final = Cycles(spelled=(), unspelled={})


@dataclass(frozen=True, slots=True, kw_only=True)
class _Files:
    question: Question
    sealed: tuple[SealedFile, ...]
    verified: tuple[SealedFile, ...]
    """The same, not to be verified again."""
    whole: bool
    """The edges of all of them fit into the driver."""
    promise: Isolation


@dataclass(slots=True)
class _Found:
    """The findings of the passes, and the reasons why they may not be complete."""

    tallies: dict[str, CheckTally]
    doubts: list[str]
    figures: dict[str, float]


def _answer(question: Question) -> GroupAnswers:
    started = perf_counter()
    files = _files(question)
    tallies = {entry.name: CheckTally() for entry in (CYCLE, *LIST_ENTRIES)}
    found = _Found(tallies=tallies, doubts=[], figures={})
    _judge(files, found)
    seconds = perf_counter() - started
    return GroupAnswers.of(
        answered(
            name,
            found.tallies[name].counted(files.promise),
            doubts=found.doubts,
            figures=found.figures if name == CYCLE.name else {},
            seconds=seconds if name == CYCLE.name else 0.0,
        )
        for name in question.checks
    )


def _files(question: Question) -> _Files:
    sealed = tuple(
        question.file("micro_operations", bucket=bucket) for bucket in range(RECORD_BUCKET_COUNT)
    )
    return _Files(
        question=question,
        sealed=sealed,
        verified=tuple(replace(file, digest="") for file in sealed),
        whole=sum(row_count(file) or 0 for file in sealed) <= _WHOLE_STEPS_MAX,
        promise=promised(question.manifest.isolation),
    )


def _judge(files: _Files, found: _Found) -> None:
    """Fill in `found`, pass by pass."""
    scan = summaries_of(files.question, files.sealed, whole=files.whole)
    summaries: Sequence[RowGroupSummary] = scan.contents
    found.doubts += scan.unreadable
    found.doubts += [doubt for summary in summaries for doubt in summary.doubts]
    found.doubts += _missing(summaries)
    for summary in summaries:
        for kind in summary.list_anomalies:
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
        reasons = reasons_of(files.question, files.verified, links)
    spelled = [spelled_cycle(cycle, reasons) for cycle in cycles.spelled]
    found.tallies[CYCLE.name].add(spelled, cycles.unspelled)


def _committed_count(summaries: Sequence[RowGroupSummary], *, promise: Isolation) -> int:
    """Return how many transactions took place, as far as known (`judgement.taking_part`)."""
    acknowledged = sum(summary.acknowledged for summary in summaries)
    if promise is Isolation.READ_UNCOMMITTED or not summaries:
        return acknowledged
    return acknowledged + len(np.unique(np.concatenate([one.observed for one in summaries])))


def _cycles(
    files: _Files, segments: NDArray[np.int64], summaries: Sequence[RowGroupSummary], found: _Found
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
    files: _Files, segments: NDArray[np.int64], summaries: Sequence[RowGroupSummary], found: _Found
) -> Sequence[RowGroupContent]:
    """Return what is inside the segments: from the first pass, or from a pass of its own."""
    if files.whole:
        return [one.whole.inside(segments) for one in summaries if one.whole is not None]
    scan = segment_parts(files.question, files.verified, segments)
    found.doubts += [reason for reason in scan.unreadable if reason not in found.doubts]
    return scan.contents


def _missing(summaries: Sequence[RowGroupSummary]) -> list[str]:
    """Return why the history cannot be whole, or why it cannot be judged."""
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


CHECKS: Final = (CheckGroup(name="cycles", entries=(CYCLE, *LIST_ENTRIES), answer=_answer),)
