"""The forensics of a run, on Spark: a task a key that lost anything.

They never change a verdict, and never stop one: a key that cannot be looked into is a trouble, and
so is a job that dies. A run that did not set out to record metadata logs and replicas has none.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.anomaly import anomalies_of
from checkers.check_group import Question
from checkers.facts import Facts, facts_of
from checkers.losses.forensics import LOSS_CHECKS, Forensics, Loss, parsed
from checkers.losses.rows import LostValues
from checkers.losses.stories import losses
from checkers.runner.tables import JobError, SealedFile, cluster_file, collected, rows_in
from checkers.verdict import Verdict
from history.writer import bucket_of

__all__ = ["loss_forensics"]

_NEEDED: Final = ("metadata_log", "replicas", "replica_records")
_TABLES: Final = (*_NEEDED, "wire", "records", "faults", "node_settings")

_STORIES: Final = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        # Losses as JSON, one list a key: they go to a file of JSON, and nowhere else.
        pa.field("losses", pa.string(), nullable=False),
        pa.field("trouble", pa.string(), nullable=False),
    ]
)


def loss_forensics(
    question: Question, verdict: Verdict, anomalies: Mapping[str, pa.Table]
) -> Forensics | None:
    """What became of the values that the verdict's anomalies name as lost; None if there are none.

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
            mine[one.values[0]] = (*mine.get(one.values[0], ()), check)
            if one.offsets:
                offsets.setdefault(one.key, {}).setdefault(one.values[0], one.offsets[0])
    for key in sorted(checks):
        yield LostValues(key=key, checks=checks[key], offsets=offsets.get(key, {}))


@dataclass(frozen=True, slots=True)
class _Tasks:
    """The keys, as `mapInArrow` calls them: batches of their numbers in, batches of rows out."""

    lost: tuple[LostValues, ...]
    files: tuple[Mapping[str, SealedFile], ...]
    facts: Facts

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                row = _story(self.lost[number], self.files[number], self.facts)
                yield from pa.Table.from_pylist([row], schema=_STORIES).to_batches()


def _story(lost: LostValues, files: Mapping[str, SealedFile], facts: Facts) -> dict[str, str]:
    try:
        tables = {name: rows_in(file, name) for name, file in files.items()}
        found = [asdict(loss) for loss in losses(lost, tables, facts)]
    except Exception as error:  # noqa: BLE001  # whatever it is, this key alone has no story
        trouble = f"{lost.key}: {type(error).__name__}: {error}"
        return {"key": lost.key, "losses": "[]", "trouble": trouble}
    return {"key": lost.key, "losses": json.dumps(found), "trouble": ""}


def _stories(
    lost: tuple[LostValues, ...], question: Question
) -> tuple[tuple[Loss, ...], tuple[str, ...]]:
    files = tuple(
        {
            name: cluster_file(question.run, question.manifest, name, bucket=bucket_of(values.key))
            for name in _TABLES
        }
        for values in lost
    )
    tasks = _Tasks(lost, files, facts_of(question.manifest))
    frame = question.spark.range(0, len(lost), 1, len(lost)).mapInArrow(
        tasks, from_arrow_schema(_STORIES)
    )
    try:
        rows = collected(frame, schema=_STORIES, budget_s=question.budget_s)
    except JobError as error:
        return (), (f"the job died: {error}",)
    by_key = rows.sort_by("key").to_pylist()
    return (
        tuple(parsed(Loss, item) for row in by_key for item in json.loads(row["losses"])),
        tuple(row["trouble"] for row in by_key if row["trouble"]),
    )
