"""A slow, obvious recording: every operation is a dict, and the tables are made by sorting them."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fencepost.history.errors import name_of
from fencepost.history.operation import F, Outcome
from fencepost.history.poll_recorder import PollRecorder
from fencepost.history.send_recorder import SendRecorder
from fencepost.history.writer import bucket_of

KEYS = ("t-0", "t-1", "u-0", "a-7")
Row = dict[str, Any]


def numbers(values: list[int], kind: type) -> Any:
    return np.array(values, kind)


@dataclass
class Model:
    """What should be in the tables."""

    operations: list[Row] = field(default_factory=list)

    def begin(self, process: int, f: F, key: str | None, time_ns: int) -> Row:
        operation: Row = {
            "process": process,
            "f": str(f),
            "key": key,
            "call_ns": time_ns,
            "return_ns": None,
            "outcome": "info",
            "error": None,
            "records": [],
        }
        self.operations.append(operation)
        return operation

    def end(self, operation: Row, outcome: Outcome, error: int, time_ns: int) -> None:
        named = None if outcome is Outcome.OK or error == 0 else name_of(error)
        operation |= {"outcome": str(outcome), "error": named, "return_ns": time_ns}

    def in_order(self) -> list[Row]:
        """By call, then process; within a process they were begun in order (sort is stable)."""
        return sorted(self.operations, key=lambda row: (row["call_ns"], row["process"]))

    def operation_rows(self) -> list[Row]:
        return [
            {
                "index": index,
                **{name: row[name] for name in ("process", "f", "key", "call_ns")},
                **{name: row[name] for name in ("return_ns", "outcome", "error")},
                "record_count": len(row["records"]),
            }
            for index, row in enumerate(self.in_order())
        ]

    def record_rows(self) -> list[Row]:
        rows = [
            {
                **{name: record[name] for name in ("key", "offset", "value")},
                "operation": index,
                "position": position,
                **{name: operation[name] for name in ("process", "f", "outcome")},
                **{name: operation[name] for name in ("call_ns", "return_ns")},
                "session": record["session"],
            }
            for index, operation in enumerate(self.in_order())
            for position, record in enumerate(operation["records"])
        ]
        order = ("key", "operation", "position")
        return sorted(rows, key=lambda row: (bucket_of(row["key"]), *(row[name] for name in order)))


class Producer:
    """A SendRecorder and the model, doing the same."""

    def __init__(self, raw: Path, model: Model, *, process: int, slot_count: int) -> None:
        self.process = process
        self.model = model
        # Each client may number the keys its own way.
        self.keys = KEYS[process % 2 :] + KEYS[: process % 2]
        self.recorder = SendRecorder(
            raw,
            client=f"producer-{process}",
            process=process,
            keys=self.keys,
            slot_count=slot_count,
        )
        self.open: dict[int, Row] = {}

    def invoke(self, keys: list[int], time_ns: int) -> list[int]:
        values = self.recorder.invoke(numbers(keys, np.int32), time_ns=time_ns).tolist()
        for key, value in zip(keys, values, strict=True):
            operation = self.model.begin(self.process, F.SEND, self.keys[key], time_ns)
            record = {"key": self.keys[key], "offset": None, "value": value, "session": 0}
            operation["records"].append(record)
            self.open[value] = operation
        return list(values)

    def complete(self, ends: list[tuple[int, int, Outcome, int]], time_ns: int) -> None:
        """Each end is (value, offset or -1, outcome, error)."""
        self.recorder.complete(
            numbers([value for value, _, _, _ in ends], np.int64),
            offsets=numbers([offset for _, offset, _, _ in ends], np.int64),
            outcomes=numbers([outcome.code for _, _, outcome, _ in ends], np.uint8),
            errors=numbers([error for _, _, _, error in ends], np.int16),
            time_ns=time_ns,
        )
        for value, offset, outcome, error in ends:
            operation = self.open.pop(value)
            operation["records"][0]["offset"] = None if offset == -1 else offset
            self.model.end(operation, outcome, error, time_ns)


class Consumer:
    """A PollRecorder and the model, doing the same."""

    def __init__(
        self, raw: Path, model: Model, *, process: int, slot_count: int, record_count: int
    ) -> None:
        self.process = process
        self.model = model
        self.keys = KEYS[process % 3 :] + KEYS[: process % 3]
        self.recorder = PollRecorder(
            raw,
            client=f"consumer-{process}",
            process=process,
            keys=self.keys,
            slot_count=slot_count,
            record_count=record_count,
        )
        self.open: dict[int, Row] = {}

    def invoke(self, time_ns: int, key: int | None = None) -> int:
        if key is None:
            sequence = self.recorder.invoke(time_ns=time_ns)
            self.open[sequence] = self.model.begin(self.process, F.POLL, None, time_ns)
        else:
            sequence = self.recorder.invoke(time_ns=time_ns, f=F.FINAL_READ, key=key)
            self.open[sequence] = self.model.begin(
                self.process, F.FINAL_READ, self.keys[key], time_ns
            )
        return sequence

    def append(self, sequence: int, records: list[tuple[int, int, int, int]]) -> None:
        """Each record is (key, offset, value, session)."""
        self.recorder.append(sequence, **self._columns(records))
        self._note(self.open[sequence], records)

    def complete(
        self,
        sequence: int,
        records: list[tuple[int, int, int, int]],
        outcome: Outcome,
        error: int,
        time_ns: int,
    ) -> None:
        self.recorder.complete(
            sequence,
            time_ns=time_ns,
            outcome=outcome,
            error=error,
            **self._columns(records),
        )
        operation = self.open.pop(sequence)
        self._note(operation, records)
        self.model.end(operation, outcome, error, time_ns)

    def _note(self, operation: Row, records: list[tuple[int, int, int, int]]) -> None:
        operation["records"].extend(
            {"key": self.keys[key], "offset": offset, "value": value, "session": session}
            for key, offset, value, session in records
        )

    def _columns(self, records: list[tuple[int, int, int, int]]) -> dict[str, Any]:
        return {
            "keys": numbers([key for key, _, _, _ in records], np.int32),
            "offsets": numbers([offset for _, offset, _, _ in records], np.int64),
            "values": numbers([value for _, _, value, _ in records], np.int64),
            "sessions": numbers([session for _, _, _, session in records], np.int32),
        }
