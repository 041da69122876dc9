"""The changes that a trial's administrator makes, written down as the metadata workload does."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from clusters.reference.nodes.messages.control import (
    AlterConfigsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from history.journal import EventJournal
from history.operation import Outcome
from workloads.generators.topic_lives import MetadataF
from workloads.simulated.metadata_writer import COUNTER_BASE, told

__all__ = ["WriteBook"]


class WriteBook:
    """The rows of `metadata_writes`, one a change, from its call to its answer, in world ns."""

    def __init__(self, raw: Path, *, process: int, node_of: Callable[[int], str]) -> None:
        """Open the journal in `raw`, the run's raw directory; `process`: the administrator's."""
        self.journal = EventJournal(raw, "metadata_writes", writer="administrator")
        self._process = process
        self._node_of = node_of
        self._open: dict[int, int] = {}
        """The numbers of those that have no answer yet, by correlation."""
        self.created: list[str] = []
        """The topics that were asked for, in order."""

    def called(self, now: int, broker: int, change: Any) -> None:
        """Record a change that is asked for; of some kinds the table has no rows."""
        columns = _written(change)
        if columns is not None:
            if columns["f"] is MetadataF.CREATE:
                self.created.append(str(columns["topic"]))
            asked = {"process": self._process, "node": self._node_of(broker), "call_ns": now}
            self._open[change.correlation] = self.journal.begin(asked | columns)

    def returned(self, now: int, answer: Any) -> None:
        """Record an answer: an error may have come after the change was done."""
        number = self._open.pop(answer.correlation, None)
        if number is None:
            return
        error, topic_id = told(answer)
        ended: dict[str, object] = {
            "outcome": Outcome.INFO if error else Outcome.OK,
            "return_ns": now,
        }
        self.journal.end(number, ended | ({"topic_id": topic_id} if topic_id else {}))


def _written(change: Any) -> dict[str, object] | None:
    match change:
        case CreateTopicsRequest():
            return {"f": MetadataF.CREATE, "topic": change.topics[0].name}
        case DeleteTopicsRequest():
            return {"f": MetadataF.DELETE, "topic": change.topics[0][0]}
        case AlterConfigsRequest():
            _, topic, _, value = change.changes[0]
            assert value is not None, "an administrator sets it, and never takes it away"
            config_value = int(value) - COUNTER_BASE
            return {"f": MetadataF.ALTER, "topic": topic, "config_value": config_value}
        case _:
            return None
