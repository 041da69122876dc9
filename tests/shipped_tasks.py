"""Tasks in this process that cross a border first, as on their way to a worker of Spark.

What a task is given and what it answers is all that Spark carries, and it carries only what can be
pickled. So a check that is judged here needs nothing that a worker of Spark would not have, but for
the modules of the tests. Only what is Spark's own is left out: other processes, their bounds and
their deaths.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import cloudpickle

from fencepost.checkers.runner.tasks import InProcessTasks, Parcel


@dataclass(frozen=True, slots=True)
class ShippedTasks:
    """The calling process as a `checkers.runner.tasks.TaskSession`."""

    cores: int = 1

    def parcels(
        self,
        deal: Callable[[Iterable[int]], Iterator[Parcel]],
        count: int,
        *,
        workers: int,
        judge: Callable[[int, Sequence[bytes]], Parcel] | None,
        budget_s: float,
    ) -> list[Parcel]:
        return InProcessTasks().parcels(
            _shipped(deal), count, workers=workers, judge=_shipped(judge), budget_s=budget_s
        )


def _shipped(work: Any) -> Any:
    return cloudpickle.loads(cloudpickle.dumps(work))
