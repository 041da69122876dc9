"""Running the data plane's pass so that no check silences another, even if it kills its process."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.data_plane.findings import findings_in
from fencepost.checkers.data_plane.key_assumptions import KEY_ASSUMPTIONS
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.large.files import Limits, large_file_findings
from fencepost.checkers.data_plane.large.jobs import Jobs
from fencepost.checkers.finding_rows import FINDINGS, findings_table
from fencepost.checkers.runner.tables import SealedFile, row_count, run_files
from fencepost.checkers.runner.tasks import JobError, TaskResult, TaskSession
from fencepost.checkers.setting import Setting

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsPass:
    """The findings of the pass over the records."""

    findings: pa.Table
    """FINDINGS, a row a key and check and a row a file."""
    died: Mapping[str, str]
    """The reason why a check did not answer at all, by check."""
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """The parameters that all passes share."""

    session: TaskSession
    small: tuple[SealedFile, ...]
    large: tuple[SealedFile, ...]
    """Files in which some key may be large."""
    setting: Setting
    budget_s: float
    limits: Limits


def records_pass(
    session: TaskSession,
    files: Sequence[SealedFile],
    *,
    setting: Setting,
    checks: Mapping[str, KeyCheck],
    budget_s: float,
    limits: Limits | None = None,
) -> RecordsPass:
    """Run one pass for all checks; if a job dies, one per check with budgets of its own.

    `files`: of `records`; `budget_s`: of one job.
    """
    question = _Question(
        session=session,
        small=tuple(file for file in files if not _is_large(file, limits or Limits())),
        large=tuple(file for file in files if _is_large(file, limits or Limits())),
        setting=setting,
        budget_s=budget_s,
        limits=limits or Limits(),
    )
    started = perf_counter()
    try:
        died: Mapping[str, str] = {}
        table = _passed(question, checks)
    except JobError as error:
        _LOG.warning("the pass over the records died (%s); running each check alone", error)
        table, died = _each(question, checks)
    return RecordsPass(findings=table, died=died, seconds=perf_counter() - started)


def _is_large(file: SealedFile, limits: Limits) -> bool:
    """Return whether some key may be large; a file that cannot be read counts as a small one."""
    return (row_count(file) or 0) > limits.key_rows


def _passed(question: _Question, checks: Mapping[str, KeyCheck]) -> pa.Table:
    tables = [FINDINGS.empty_table()]
    if question.small:
        work = partial(findings_in, setting=question.setting, checks=dict(checks))
        answers = run_files(
            question.session, question.small, work, budget_s=question.budget_s, apart=False
        )
        tables += [
            _silent(answer) if answer.content is None else answer.content for answer in answers
        ]
    if question.large:
        tables.append(
            large_file_findings(
                question.large,
                setting=question.setting,
                checks=checks,
                jobs=Jobs(session=question.session, budget_s=question.budget_s),
                limits=question.limits,
            )
        )
    return pa.concat_tables(tables)


def _silent(answer: TaskResult[SealedFile, pa.Table]) -> pa.Table:
    """Return FINDINGS of a file whose task failed."""
    row = {"path": answer.task.path, "record_count": 0, "unknown": answer.failure}
    return findings_table([row | {"seconds": answer.seconds}])


def _each(question: _Question, checks: Mapping[str, KeyCheck]) -> tuple[pa.Table, dict[str, str]]:
    """Return the findings of every check whose own pass answers, and why the others' did not.

    The files and the assumptions of the keys answer in a pass without any check.
    """
    died: dict[str, str] = {}
    tables = [FINDINGS.empty_table()]
    for name in ("", *checks):
        chosen = {name: checks[name]} if name else {}
        try:
            table = _passed(question, chosen)
            tables.append(table.filter(pc.equal(table["check"], name)) if name else table)
        except JobError as error:
            for silent in (name,) if name else KEY_ASSUMPTIONS:
                died[silent] = f"its pass over the records died: {error}"
    return pa.concat_tables(tables), died
