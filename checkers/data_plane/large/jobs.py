"""How the tasks of large keys run: many at a time, each on its own, results in small.

A task is a callable without arguments whose result is small, or which deals its result out by
number. What crosses between processes is pickled: written and read by one version of one program,
and never stored. The rows that are exchanged travel as such parcels, a few in each task, because
Spark moves a parcel of a million rows as quickly as one of ten.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeVar

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from checkers.runner.tables import collected

__all__ = ["PARCELS", "Jobs", "Parcel", "SparkJobs", "judge_parcels"]

PARCELS: Final = pa.schema(
    [
        # Of the task whose result it is, or of those that are judged together.
        pa.field("number", pa.int64(), nullable=False),
        pa.field("content", pa.binary(), nullable=False),
    ]
)

Result = TypeVar("Result")
Parcel = tuple[int, Any]
"""A number, and what is for it; one below 0 is passed on as it is."""


class Jobs(Protocol):
    """Where tasks run."""

    def results(self, tasks: Sequence[Callable[[], Result]]) -> list[Result]:
        """The result of each task, in order."""

    def exchanged(
        self,
        tasks: Sequence[Callable[[], Iterable[Parcel]]],
        judge: Callable[[int, Sequence[Any]], Any],
    ) -> dict[int, Any]:
        """What `judge` makes of all that is for a number, by number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkJobs:
    """Tasks as tasks of Spark. Raises `checkers.runner.tables.JobError` if a job dies."""

    spark: SparkSession
    budget_s: float
    """Of one job."""

    def results(self, tasks: Sequence[Callable[[], Result]]) -> list[Result]:
        """The result of each task, in order."""
        if not tasks:
            return []
        frame = self._numbers(tasks).mapInArrow(_Each(tuple(tasks)), from_arrow_schema(PARCELS))
        found = _unpacked(collected(frame, schema=PARCELS, budget_s=self.budget_s))
        return [found[number] for number in range(len(tasks))]

    def exchanged(
        self,
        tasks: Sequence[Callable[[], Iterable[Parcel]]],
        judge: Callable[[int, Sequence[Any]], Any],
    ) -> dict[int, Any]:
        """What `judge` makes of all that is for a number, by number."""
        schema = from_arrow_schema(PARCELS)
        dealt = self._numbers(tasks).mapInArrow(_Dealt(tuple(tasks)), schema)
        frame = dealt.groupBy("number").applyInArrow(_judged(judge), schema)
        return _unpacked(collected(frame, schema=PARCELS, budget_s=self.budget_s))

    def _numbers(self, tasks: Sequence[object]) -> Any:
        return self.spark.range(0, len(tasks), 1, len(tasks))


def judge_parcels(
    number: int, parcels: Sequence[Any], judge: Callable[[int, Sequence[Any]], Any]
) -> Any:
    """What `judge` makes of them; of a number below 0, the one parcel itself."""
    if number < 0:
        (only,) = parcels
        return only
    return judge(number, parcels)


@dataclass(frozen=True, slots=True)
class _Each:
    """Tasks, as `mapInArrow` calls them: batches of their numbers in, their results out."""

    tasks: tuple[Callable[[], Any], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                yield _packed(number, self.tasks[number]())


@dataclass(frozen=True, slots=True)
class _Dealt:
    """The same, of tasks that deal their results out."""

    tasks: tuple[Callable[[], Iterable[Parcel]], ...]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for receiver, content in self.tasks[number]():
                    yield _packed(receiver, content)


def _judged(
    judge: Callable[[int, Sequence[Any]], Any],
) -> Callable[[pa.Table], pa.Table]:
    """What is for one number, as `applyInArrow` calls it, which counts a method's arguments."""

    def judged(parcels: pa.Table) -> pa.Table:
        number = parcels.column("number")[0].as_py()
        contents = [pickle.loads(one.as_buffer()) for one in parcels.column("content")]  # noqa: S301  # our own
        content = judge_parcels(number, contents, judge)
        return pa.Table.from_batches([_packed(number, content)])

    return judged


def _packed(number: int, content: object) -> pa.RecordBatch:
    return pa.record_batch([[number], [pickle.dumps(content, protocol=5)]], schema=PARCELS)


def _unpacked(parcels: pa.Table) -> dict[int, Any]:
    numbers = parcels.column("number").to_pylist()
    contents = (pickle.loads(one.as_buffer()) for one in parcels.column("content"))  # noqa: S301  # our own
    return dict(zip(numbers, contents, strict=True))
