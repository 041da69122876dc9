"""Asking the groups, none able to silence another; the checks of whole tables are one of them.

To read a tape and to replay a log takes longer than most checks do. So the calls of kernels that
one worker makes share what they read, but for the tables of a bucket. A kernel that crashes is
unknown for its call and check; so is a table that cannot be read, and a call that ends its worker.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.entry import CatalogueEntry
from checkers.facts import Facts, facts_of
from checkers.finding_rows import FINDINGS, findings_table, found_row
from checkers.metadata.view import MetadataView
from checkers.results import FileAnswers, anomalies_found, result_of
from checkers.runner.tables import SealedFile, byte_count, row_count, rows_in
from checkers.runner.tasks import TaskResult
from checkers.table_check import TableCheck
from checkers.verdict import CheckResult
from history.cluster_schema import METADATA_LOG
from history.schema import RECORD_BUCKET_COUNT

__all__ = ["group_answers", "table_group"]

_LOG: Final = logging.getLogger(__name__)
_BUCKETED: Final = ("records", "replica_records")


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
        calls = [call for check in asked for call in _calls(check, question)]
        of_buckets = (
            byte_count(file)
            for call in calls
            for name, file in call.files.items()
            if name in _BUCKETED
        )
        judge = _Judge(facts=facts_of(question.manifest))
        answers = question.each(calls, judge, bytes_in_all=sum(of_buckets))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One call of a kernel."""

    check: TableCheck
    files: Mapping[str, SealedFile]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    """The caller of the checks; the tables it has read and replayed serve all calls."""

    facts: Facts
    shelf: dict[SealedFile, pa.Table] = field(default_factory=dict)
    views: dict[SealedFile | None, MetadataView] = field(default_factory=dict)

    def __call__(self, call: _Call) -> pa.Table:
        """Return FINDINGS of the call."""
        tables = {name: self._read(name, file) for name, file in call.files.items()}
        file = call.files.get("metadata_log")
        if file not in self.views:
            # Of no log, where the kernel does not ask for one.
            log = METADATA_LOG.empty_table() if file is None else tables["metadata_log"]
            self.views[file] = MetadataView(facts=self.facts, metadata_log=log)
        name = call.check.entry.name
        return findings_table(
            [
                found_row(name, found) | {"path": name, "key": key, "seconds": 0.0}
                for key, found in call.check.kernel(tables, self.views[file])
            ]
        )

    def _read(self, name: str, file: SealedFile) -> pa.Table:
        if name in _BUCKETED:
            return rows_in(file, name)
        if file not in self.shelf:
            self.shelf[file] = rows_in(file, name)
        return self.shelf[file]


def _calls(check: TableCheck, question: Question) -> Iterable[_Call]:
    for bucket in _buckets(question) if check.by_bucket else (0,):
        files = {name: question.file(name, bucket=bucket) for name in check.given}
        yield _Call(check=check, files=files)


def _buckets(question: Question) -> tuple[int, ...]:
    """Return the buckets that hold anything or cannot be read: few keys fill few buckets."""
    return tuple(
        bucket
        for bucket in range(RECORD_BUCKET_COUNT)
        if any(row_count(question.file(name, bucket=bucket)) != 0 for name in _BUCKETED)
    )


def _told(
    entry: CatalogueEntry, answers: Sequence[TaskResult[_Call, pa.Table]]
) -> tuple[CheckResult, pa.Table]:
    told = (answer.content for answer in answers if answer.content is not None)
    findings = pa.concat_tables([FINDINGS.empty_table(), *told])
    # A check that cannot read one tape in sixteen calls has one reason and not sixteen.
    failures = tuple(dict.fromkeys(answer.failure for answer in answers if answer.failure))
    seconds = sum(answer.seconds for answer in answers)
    files = FileAnswers(record_count=0, unreadable=failures, seconds=seconds)
    result = result_of(entry, findings, files=files, broken=frozenset(), died="")
    return replace(result, seconds=seconds), anomalies_found(entry.name, findings)
