"""The forensics of a run, on Spark: a task a key that lost anything.

They never change a verdict, and never stop one: a key that cannot be looked into is a trouble, and
so is a job that dies. A run that did not set out to record metadata logs and replicas has none.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from fencepost.checkers.anomaly import anomalies_of
from fencepost.checkers.check_group import Question
from fencepost.checkers.facts import Facts, facts_of
from fencepost.checkers.losses.forensics import LOSS_CHECKS, Forensics, Loss
from fencepost.checkers.losses.rows import LostValues
from fencepost.checkers.losses.stories import losses
from fencepost.checkers.runner.tables import SealedFile, rows_in
from fencepost.checkers.verdict import Verdict
from fencepost.history.writer import bucket_of

_NEEDED: Final = ("metadata_log", "replicas", "replica_records")
_TABLES: Final = (*_NEEDED, "wire", "records", "faults", "node_settings")


def loss_forensics(
    question: Question, verdict: Verdict, anomalies: Mapping[str, pa.Table]
) -> Forensics | None:
    """Return the fate of the values that the anomalies name as lost; None without a lost value.

    `anomalies`: ANOMALIES by check.
    """
    lost = tuple(_lost_values(anomalies))
    if not lost or not set(_NEEDED) <= set(question.manifest.recorded):
        return None
    counts = {
        result.check: result.anomaly_count
        for result in verdict.checks
        if result.check in LOSS_CHECKS and result.anomaly_count
    }
    stories, troubles = _stories(lost, question)
    return Forensics(
        run_id=question.manifest.run_id, counts=counts, losses=stories, troubles=troubles
    )


def _lost_values(anomalies: Mapping[str, pa.Table]) -> Iterator[LostValues]:
    checks: dict[str, dict[int, tuple[str, ...]]] = {}
    offsets: dict[str, dict[int, int]] = {}
    for check in LOSS_CHECKS:
        for one in anomalies_of(anomalies[check]) if check in anomalies else ():
            mine = checks.setdefault(one.key, {})
            value = int(one.proof.fact("value"))
            mine[value] = (*mine.get(value, ()), check)
            if one.offsets:
                offsets.setdefault(one.key, {}).setdefault(value, int(one.proof.fact("offset")))
    for key in sorted(checks):
        yield LostValues(key=key, checks=checks[key], offsets=offsets.get(key, {}))


def _stories(
    lost: tuple[LostValues, ...], question: Question
) -> tuple[tuple[Loss, ...], tuple[str, ...]]:
    """Return the losses of all keys, and why those of some keys cannot be told."""
    tasks = [
        _Task(
            lost=values,
            files={name: question.file(name, bucket=bucket_of(values.key)) for name in _TABLES},
            facts=facts_of(question.manifest),
        )
        for values in lost
    ]
    answers = question.each(tasks, _story)
    return (
        tuple(loss for answer in answers for loss in answer.content or ()),
        tuple(f"{answer.task.lost.key}: {answer.failure}" for answer in answers if answer.failure),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """A key that lost anything."""

    lost: LostValues
    files: Mapping[str, SealedFile]
    facts: Facts


def _story(task: _Task) -> list[Loss]:
    tables = {name: rows_in(file, name) for name, file in task.files.items()}
    return list(losses(task.lost, tables, task.facts))
