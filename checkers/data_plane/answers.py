"""The answers of checks on the rows of a key, and the sum of the answers on parts of a key.

A check finds every anomaly in one part and no other, so counts add up; the first proofs of the key
are among the first of each part. A check that crashed on a part is unknown for the key.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.anomaly import ANOMALIES, PROOFS_MAX, Found
from fencepost.checkers.data_plane.key_assumptions import KEY_ASSUMPTIONS
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.data_plane.key_log import KeyLog
from fencepost.checkers.finding_rows import found_row, unknown_row
from fencepost.checkers.runner.memory import out_of_memory


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAnswer:
    """The answer of one check on a key or a part of it."""

    found: Found | None
    """None if it crashed."""
    crash: str = ""
    seconds: float


def answer_of(log: KeyLog, check: KeyCheck) -> KeyAnswer:
    """Return the answer of one check; a crash of it must not silence the others."""
    started = perf_counter()
    try:
        found = check.kernel(log)
    except Exception as error:  # noqa: BLE001  # whatever it is, this check alone is unknown
        return KeyAnswer(found=None, crash=crash(log.key, error), seconds=perf_counter() - started)
    return KeyAnswer(found=found, seconds=perf_counter() - started)


def answers_of(log: KeyLog, checks: Mapping[str, KeyCheck]) -> dict[str, KeyAnswer]:
    """Return the answer of each of these checks, by name."""
    return {name: answer_of(log, check) for name, check in checks.items()}


def judged_rows(
    key: str, checks: Mapping[str, KeyCheck], answer: Mapping[str, KeyAnswer]
) -> Iterator[dict[str, Any]]:
    """Yield rows of FINDINGS, without their path: of the assumptions, and of these checks.

    A check that rests on an assumption which the key breaks does not judge it.
    """
    broken: set[str] = set()
    for name in KEY_ASSUMPTIONS:
        row = _row(name, answer[name])
        if row["unknown"] or row["never_count"]:
            broken.add(name)
        yield row
    for name, check in checks.items():
        missing = sorted(broken.intersection(check.entry.rests_on))
        if missing:
            yield unknown_row(name, f"{key} breaks {' and '.join(missing)}", seconds=0.0)
        else:
            yield _row(name, answer[name])


def added_up(check: KeyCheck, key: str, parts: Iterable[KeyAnswer]) -> KeyAnswer:
    """Return the answer on a key, of those on all its parts."""
    answers = list(parts)
    seconds = sum(one.seconds for one in answers)
    crashed = next((one.crash for one in answers if one.crash), "")
    if crashed:
        return KeyAnswer(found=None, crash=crashed, seconds=seconds)
    founds = [one.found for one in answers if one.found is not None]
    count = sum(found.doubt_count for found in founds)
    doubts = [found.doubt for found in founds if found.doubt]
    doubt = check.doubt(key, count) if check.doubt else next(iter(doubts), "")
    found = Found(
        table=_first_proofs(founds),
        never_count=sum(found.never_count for found in founds),
        allowed_count=sum(found.allowed_count for found in founds),
        case_count=sum(found.case_count for found in founds),
        doubt=doubt,
        doubt_count=count,
    )
    return KeyAnswer(found=found, seconds=seconds)


def crash(key: str, error: Exception) -> str:
    """Return the reason why a check does not answer on a key."""
    if isinstance(error, MemoryError):
        return f"the check did not answer on {key}: {out_of_memory(error)}"
    return f"the check crashed on {key}: {type(error).__name__}: {error}"


def _row(name: str, answer: KeyAnswer) -> dict[str, Any]:
    if answer.found is None:
        return unknown_row(name, answer.crash, seconds=answer.seconds)
    return found_row(name, answer.found) | {"seconds": answer.seconds}


def _first_proofs(founds: Sequence[Found]) -> pa.Table:
    """Return the first proofs of all: never allowed ones first, each by its key's order."""
    table = pa.concat_tables([ANOMALIES.empty_table(), *(found.table for found in founds)])
    if not table.num_rows:
        return table
    order = np.concatenate([np.array(found.order, dtype=np.int64) for found in founds])
    allowed: NDArray[np.bool_] = table["allowed"].to_numpy()
    first = np.lexsort((order, allowed))[:PROOFS_MAX]
    return pc.take(table, pa.array(first))
