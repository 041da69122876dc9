"""The journals of a run as tables: events of faults put together, samples as they stand."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from history.failure import HarnessError
from history.journal import journal_lines
from history.schema import FAULTS, SAMPLES

__all__ = ["fault_table", "sample_tables"]

_BATCH_ROWS: Final = 1 << 16
_NOTED: Final = {"effect": ("effect_ns", "evidence"), "end": ("end_ns", "heal_evidence")}


def fault_table(journal: Path) -> pa.Table:
    """Return the faults, in the order in which they began; of an absent journal, none.

    Raises HarnessError, naming file and line, for an event that makes no sense.
    """
    faults: list[dict[str, Any]] = []
    for number, line in enumerate(journal_lines(journal), start=1):
        try:
            _apply(line, faults)
        except (KeyError, IndexError, TypeError) as error:
            raise HarnessError(f"{journal}:{number} is not an event of a fault: {line}") from error
    return pa.Table.from_pylist(faults, schema=FAULTS)


def sample_tables(journal: Path) -> Iterator[pa.Table]:
    """Yield the samples in the order in which they were taken, a bounded number at a time.

    Raises HarnessError, naming file and line, for a line that is no sample.
    """
    rows = _samples(journal)
    while batch := list(islice(rows, _BATCH_ROWS)):
        yield pa.Table.from_pylist(batch, schema=SAMPLES)


def _apply(line: dict[str, Any], faults: list[dict[str, Any]]) -> None:
    if line["event"] == "begin":
        begun = {"begin_ns": line["time_ns"], "index": len(faults)}
        said = {name: line[name] for name in ("fault", "targets")}
        faults.append(begun | said | {"kind": line.get("kind")})
        return
    time_name, words_name = _NOTED[line["event"]]
    fault = faults[line["index"]]
    # The first time counts.
    fault.setdefault(time_name, line["time_ns"])
    fault.setdefault(words_name, line["evidence"])


def _samples(journal: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(journal_lines(journal), start=1):
        if set(line) != set(SAMPLES.names):
            raise HarnessError(f"{journal}:{number} is not a sample: {line}")
        yield line
