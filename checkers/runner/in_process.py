"""A Spark session's part for checks, done by the calling process, one task after the other.

Inside a Spark task there is no session, and a run may be so small that it is one task's work: the
self-test judges hundreds of them, a task each. The checks and all that weighs their answers are the
same; what is left out is Spark's own part: it deals tasks out, bounds them and collects their rows.

Only what `checkers.runner.tables` and the groups of checks call is here. A large key, which is cut
into pieces and dealt out by key, needs a real session.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

import pyarrow as pa
from pyspark.sql import SparkSession

__all__ = ["InProcessFrame", "InProcessSession", "in_process_session"]

Kernel = Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]]

_IDS: Final = pa.schema([pa.field("id", pa.int64(), nullable=False)])


def in_process_session() -> SparkSession:
    """A session for `checkers.check.check_run`, where there is no other."""
    return cast("SparkSession", InProcessSession())


class InProcessSession:
    """Of a session, what checks use."""

    defaultParallelism = 1  # noqa: N815  # Spark's

    @property
    def sparkContext(self) -> "InProcessSession":  # noqa: N802  # Spark's
        """Itself: it knows how many tasks run beside each other."""
        return self

    def range(self, start: int, end: int, _step: int, _tasks: int) -> "InProcessFrame":
        """The numbers from `start` on, below `end`, in the column `id`."""
        return InProcessFrame(pa.table([pa.array(range(start, end), pa.int64())], schema=_IDS))

    def rows(self, rows: Sequence[dict[str, Any]]) -> "InProcessFrame":
        """These rows."""
        return InProcessFrame(pa.Table.from_pylist(list(rows)))


@dataclass(frozen=True, slots=True)
class InProcessFrame:
    """A frame whose rows are there."""

    table: pa.Table

    def mapInArrow(self, kernel: Kernel, _schema: object) -> "InProcessFrame":  # noqa: N802
        """The rows that a kernel makes of the batches; it is called now."""
        batches = list(kernel(iter(self.table.to_batches())))
        return InProcessFrame(pa.Table.from_batches(batches) if batches else pa.table({}))

    def toArrow(self) -> pa.Table:  # noqa: N802
        """All rows."""
        return self.table
