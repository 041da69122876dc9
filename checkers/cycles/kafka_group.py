"""The check of cycles among Kafka's transactions, as a group of the checker (`moments`).

One pass over the files of records: a task sends, of each key, the runs of its log and which reads
saw which transaction. The gathered data is small compared with the records: each transaction and
each read has many records.
"""

from collections.abc import Iterator
from functools import partial
from time import perf_counter
from typing import Final

import numpy as np

from checkers.anomaly import ANOMALIES
from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.cycles.answers import Counted, answered
from checkers.cycles.cycles import cycles_of
from checkers.cycles.logs import COLUMNS, key_transactions
from checkers.cycles.moment_words import spelled_interleaving, spelled_moments
from checkers.cycles.moments import (
    Committed,
    KeyTransactions,
    committed_of,
    moments_graph,
    written_round,
)
from checkers.cycles.scan import passed
from checkers.entry import Entry, Kind, Strength
from checkers.runner.tables import SealedFile, keys_in, record_files
from checkers.verdict import CheckResult, Validity
from history.failure import HarnessError

__all__ = ["CHECKS", "judged"]

TRANSACTION_CYCLE: Final = Entry(
    id="D14k",
    name="transaction-cycle",
    title="Kafka's transactions precede each other in a circle",
    kind=Kind.ANOMALY,
    rule="Nodes are the moments of each record's append, each commit and each ok read at "
    "read_committed; edges are ww (neighbours in a partition's log), wr (a commit before the read "
    "of one of its records), the order of a process (begin, appends, commit, next begin; its "
    "reads), and real time. Every cycle of these is an anomaly (never). A cycle of whole "
    "transactions by ww alone is reported and legal.",
    meaning="A record stands in the log before one that was there already, or was read before it "
    "was committed or sent.",
    case="a transaction that was to be committed, did not fail, and has a record in some log",
    source="KIP-98; Adya, Liskov, O'Neil 2000",
    strength=Strength.ALLOWED_IF,
    allowed_if="only the writes of transactions that were open at the same time are ordered in a "
    "circle, over several partitions (G0): Kafka does not isolate writers from each other",
    needs=("transactions", "operations", "records"),
)


def _answer(question: Question) -> GroupAnswers:
    started = perf_counter()
    try:
        committed = committed_of(question.rows("transactions"))
    except HarnessError as error:
        unknown = CheckResult(
            check=TRANSACTION_CYCLE.name, validity=Validity.UNKNOWN, reason=str(error)
        )
        return GroupAnswers(results=(unknown,), anomalies=ANOMALIES.empty_table())
    files = record_files(question.run, question.manifest)
    scan = passed(question, files, partial(_of_keys, committed=committed))
    keys = sorted((key for key, _ in scan.contents), key=lambda one: one.key)
    result, anomalies = answered(
        TRANSACTION_CYCLE.name,
        judged(committed, keys),
        doubts=[*scan.unreadable, *(doubt for _, doubt in scan.contents if doubt)],
        figures={"transaction_count": len(committed.index)},
        seconds=perf_counter() - started,
    )
    return GroupAnswers(results=(result,), anomalies=anomalies)


def _of_keys(file: SealedFile, *, committed: Committed) -> Iterator[tuple[KeyTransactions, str]]:
    for key, records in keys_in(file, COLUMNS):
        yield key_transactions(key, records, committed)


def judged(committed: Committed, keys: list[KeyTransactions]) -> Counted:
    """Find cycles of moments, which never may be, and of whole transactions, which may."""
    moments = moments_graph(committed, keys)
    impossible = cycles_of(moments.graph)
    legal = cycles_of(written_round(committed, keys))
    never = [
        spelled_moments(cycle, moments, committed=committed, keys=keys)
        for cycle in impossible.spelled
    ]
    allowed = [
        spelled_interleaving(cycle, committed=committed, keys=keys) for cycle in legal.spelled
    ]
    return Counted(
        never=never,
        allowed=allowed,
        never_count=len(never) + sum(impossible.unspelled.values()),
        allowed_count=len(allowed) + sum(legal.unspelled.values()),
        case_count=len({int(one) for key in keys for one in np.unique(key.run)}),
    )


CHECKS: Final = (
    CheckGroup(name="transaction cycles", entries=(TRANSACTION_CYCLE,), answer=_answer),
)
