"""Groups of checks beside the data plane's: what one is, is asked, and answers.

A group answers its checks from the sealed tables of a run, in whatever way suits it; most are
kernels of tables of the cluster (`checkers.table_pass`). It is asked for those of its checks
whose tables the run set out to record: another check is not asked, and stands in no verdict. A
group that crashes as a whole leaves its checks unknown, and no others.
"""

from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import SparkSession

from checkers.data_plane.key_log import Setting
from checkers.entry import Entry
from checkers.verdict import CheckResult
from history.manifest import Manifest
from history.run_directory import RunDirectory

__all__ = ["CheckGroup", "GroupAnswers", "Question"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a group is asked."""

    run: RunDirectory
    manifest: Manifest
    checks: tuple[str, ...]
    """By name, in the order of the catalogue; never empty."""
    setting: Setting
    """What the operations say beside their records: promises, complete final reads."""
    spark: SparkSession
    budget_s: float
    """Of one Spark job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswers:
    """What a group answers."""

    results: tuple[CheckResult, ...]
    """One a check that was asked; a check without one counts as not run."""
    anomalies: pa.Table
    """`checkers.anomaly.ANOMALIES` of all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckGroup:
    """Checks that are answered together."""

    name: str
    entries: tuple[Entry, ...]
    """Of the catalogue, which lists them, too."""
    answer: Callable[[Question], GroupAnswers]
