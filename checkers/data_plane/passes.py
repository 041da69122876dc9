"""Running the data plane's pass so that no check silences another, even if it kills its process."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from checkers.data_plane.checks import KEY_ASSUMPTIONS, Kernel
from checkers.data_plane.findings import findings
from checkers.finding_rows import FINDINGS
from checkers.kernels.key_log import Setting
from checkers.tables import JobError, collected

__all__ = ["RecordsPass", "records_pass"]

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsPass:
    """What the pass over the records found."""

    findings: pa.Table
    """FINDINGS, a row a key and check and a row a file."""
    died: Mapping[str, str]
    """Why a check did not answer at all, by check."""
    seconds: float


def records_pass(
    files: DataFrame, *, setting: Setting, checks: Mapping[str, Kernel], budget_s: float
) -> RecordsPass:
    """One pass for all checks; if its job dies, one a check, each with a budget of its own."""
    started = perf_counter()
    try:
        died: Mapping[str, str] = {}
        table = _passed(files, setting=setting, checks=checks, budget_s=budget_s)
    except JobError as error:
        _LOG.warning("the pass over the records died (%s); running each check by itself", error)
        table, died = _each(files, setting=setting, checks=checks, budget_s=budget_s)
    return RecordsPass(findings=table, died=died, seconds=perf_counter() - started)


def _passed(
    files: DataFrame, *, setting: Setting, checks: Mapping[str, Kernel], budget_s: float
) -> pa.Table:
    frame = findings(files, setting=setting, checks=checks)
    return collected(frame, schema=FINDINGS, budget_s=budget_s)


def _each(
    files: DataFrame, *, setting: Setting, checks: Mapping[str, Kernel], budget_s: float
) -> tuple[pa.Table, dict[str, str]]:
    """The findings of every check whose own pass answers, and why the others' did not.

    The files and the assumptions of the keys answer in a pass without any check.
    """
    died: dict[str, str] = {}
    tables = [FINDINGS.empty_table()]
    for name in ("", *checks):
        chosen = {name: checks[name]} if name else {}
        try:
            table = _passed(files, setting=setting, checks=chosen, budget_s=budget_s)
            tables.append(table.filter(pc.equal(table["check"], name)) if name else table)
        except JobError as error:
            for silent in (name,) if name else KEY_ASSUMPTIONS:
                died[silent] = f"its pass over the records died: {error}"
    return pa.concat_tables(tables), died
