"""Asking the groups, none able to silence another; the checks of tables are one of them.

To read a tape and to replay a log takes longer than most checks do. So the calls of kernels that
one worker makes share what they read (`checkers.kernel_calls`). A kernel that crashes is unknown
for its call and check; so is a table that cannot be read, and a call that ends its worker.
"""

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import pyarrow as pa

from fencepost.checkers.check_group import CheckGroup, GroupAnswers, Question
from fencepost.checkers.entry import CatalogueEntry
from fencepost.checkers.facts import facts_of
from fencepost.checkers.finding_rows import FINDINGS
from fencepost.checkers.kernel_calls import (
    BUCKETED,
    KernelCall,
    KernelCaller,
    calls_of,
    shared_count,
)
from fencepost.checkers.results import FileAnswers, anomalies_found, result_of
from fencepost.checkers.runner.tables import byte_count
from fencepost.checkers.runner.tasks import TaskResult
from fencepost.checkers.table_check import TableCheck
from fencepost.checkers.verdict import CheckResult

_LOG: Final = logging.getLogger(__name__)


def group_answers(groups: Sequence[CheckGroup], question: Question) -> tuple[GroupAnswers, ...]:
    """Return the answers of the groups that have any of the question's checks, in order."""
    asked = set(question.checks)
    chosen = {
        group.name: tuple(entry.name for entry in group.entries if entry.name in asked)
        for group in groups
    }
    return tuple(
        _answers(group, replace(question, checks=chosen[group.name]))
        for group in groups
        if chosen[group.name]
    )


def table_group(checks: Sequence[TableCheck]) -> CheckGroup:
    """Return these checks as a group."""

    def answer(question: Question) -> GroupAnswers:
        asked = [check for check in checks if check.entry.name in question.checks]
        facts = facts_of(question.manifest)
        calls = list(calls_of(asked, question, facts))
        of_buckets = (
            byte_count(file)
            for call in calls
            for name, file in call.files.items()
            if name in BUCKETED
        )
        size = sum(of_buckets)
        cut = any(call.slice_of.count > 1 for call in calls)
        # The calls of a slice go to one worker, lest each of them reads the slice anew.
        workers = shared_count(calls) if cut else None
        answers = question.each(
            calls, KernelCaller(facts), bytes_in_all=size, workers=workers, neighbours=cut
        )
        return GroupAnswers.of(
            _told(check.entry, [one for one in answers if one.task.check is check])
            for check in asked
        )

    return CheckGroup(name="tables", entries=tuple(check.entry for check in checks), answer=answer)


def _answers(group: CheckGroup, question: Question) -> GroupAnswers:
    try:
        return group.answer(question)
    except Exception as error:  # noqa: BLE001  # whatever it is, only these checks are unknown
        _LOG.exception("the checks of %s crashed", group.name)
        reason = f"the checks of {group.name} crashed: {type(error).__name__}: {error}"
        return GroupAnswers.unknown(question.checks, reason)


def _told(
    entry: CatalogueEntry, answers: Sequence[TaskResult[KernelCall, pa.Table]]
) -> tuple[CheckResult, pa.Table]:
    told = (answer.content for answer in answers if answer.content is not None)
    findings = pa.concat_tables([FINDINGS.empty_table(), *told])
    # A check that cannot read one tape in sixteen calls has one reason and not sixteen.
    failures = tuple(dict.fromkeys(answer.failure for answer in answers if answer.failure))
    seconds = sum(answer.seconds for answer in answers)
    files = FileAnswers(record_count=0, unreadable=failures, seconds=seconds)
    result = result_of(entry, findings, files=files, broken=frozenset(), died="")
    return replace(result, seconds=seconds), anomalies_found(entry.name, findings)
