"""Tasks on Spark: it deals them out, bounds them and collects what they answer.

A row of Arrow is a parcel, and its content is pickled: no record goes through the JVM, and Spark
moves a parcel of a million rows as quickly as one of ten.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Event, Thread, Timer
from typing import Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from fencepost.checkers.runner.memory import give_back_what_is_freed
from fencepost.checkers.runner.tasks import JobError, Parcel

_PARCELS: Final = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("content", pa.binary(), nullable=False),
    ]
)
_TAG: Final = "fencepost-check"
_SHOWN_EVERY_S: Final = 1.0
_REASON_LENGTH_MAX: Final = 400
_DEAD_WORKER: Final = "Python worker exited unexpectedly"


@dataclass(frozen=True, slots=True)
class SparkTasks:
    """A Spark session as `checkers.runner.tasks.TaskSession`."""

    spark: SparkSession
    shown: Callable[[int, int], None] | None = None
    """Is told, now and then, how many tasks of the job under way are done, and of how many."""

    @property
    def cores(self) -> int:
        """The number of workers that run at the same time."""
        return int(self.spark.sparkContext.defaultParallelism)

    def parcels(
        self,
        deal: Callable[[Iterable[int]], Iterator[Parcel]],
        count: int,
        *,
        workers: int,
        judge: Callable[[int, Sequence[bytes]], Parcel] | None,
        budget_s: float,
    ) -> list[Parcel]:
        """See the port."""
        schema = from_arrow_schema(_PARCELS)
        frame = self.spark.range(0, count, 1, workers).mapInArrow(_Batches(deal), schema)
        if judge is not None:
            frame = frame.groupBy("number").applyInArrow(_judged(judge), schema)
        found = self._collected(frame, budget_s)
        return list(zip(found["number"].to_pylist(), found["content"].to_pylist(), strict=True))

    def _collected(self, frame: DataFrame, budget_s: float) -> pa.Table:
        """Return the rows of a small frame. Raises JobError if the job dies or is too slow."""
        context, ran_out = self.spark.sparkContext, Event()

        def give_up() -> None:
            ran_out.set()
            context.cancelJobsWithTag(_TAG)

        timer = Timer(budget_s, give_up)
        context.addJobTag(_TAG)
        timer.start()
        ended = self._watched()
        try:
            return frame.toArrow()
        except (PySparkException, Py4JError) as error:
            if (interrupt := _interrupt_behind(error)) is not None:
                raise interrupt from error
            if ran_out.is_set():
                raise JobError(f"it did not end within its budget of {budget_s:g} s") from error
            raise JobError(_reason(str(error))) from error
        finally:
            ended.set()
            timer.cancel()
            context.removeJobTag(_TAG)

    def _watched(self) -> Event:
        """Tell of tasks that are done until the event is set."""
        ended, shown = Event(), self.shown
        if shown is None:
            return ended
        tracker = self.spark.sparkContext.statusTracker()

        def watch() -> None:
            while not ended.wait(_SHOWN_EVERY_S):
                try:
                    stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
                    told = [(one.numCompletedTasks, one.numTasks) for one in stages if one]
                except (Py4JError, OSError):
                    return  # the session is ending: what it is asked for fails with a reason
                if told and not ended.is_set():
                    done, count = map(sum, zip(*told, strict=True))
                    shown(done, count)

        Thread(target=watch, name="tasks-done", daemon=True).start()
        return ended


def _interrupt_behind(error: BaseException) -> KeyboardInterrupt | None:
    """Return the interrupt that an error of Spark's hides: what it breaks off fails after it."""
    behind: BaseException | None = error
    while behind is not None and not isinstance(behind, KeyboardInterrupt):
        behind = behind.__context__
    return behind


@dataclass(frozen=True, slots=True)
class _Batches:
    """The numbers of tasks, as `mapInArrow` calls for them: batches in, batches of parcels out."""

    deal: Callable[[Iterable[int]], Iterator[Parcel]]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        give_back_what_is_freed()
        numbers = (number for batch in batches for number in batch.column("id").to_pylist())
        for number, content in self.deal(numbers):
            yield _row(number, content)


def _judged(
    judge: Callable[[int, Sequence[bytes]], Parcel],
) -> Callable[[pa.Table], pa.Table]:
    """Return a function on all parcels for one number; `applyInArrow` counts its arguments."""

    def judged(parcels: pa.Table) -> pa.Table:
        give_back_what_is_freed()
        contents = parcels.column("content").to_pylist()
        return pa.Table.from_batches([_row(*judge(parcels.column("number")[0].as_py(), contents))])

    return judged


def _row(number: int, content: bytes) -> pa.RecordBatch:
    return pa.record_batch([[number], [content]], schema=_PARCELS)


def _reason(text: str) -> str:
    """Return the cause named in an error message that goes on with stack traces."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = next((line for line in lines if _DEAD_WORKER in line), lines[0] if lines else text)
    return found[:_REASON_LENGTH_MAX]
