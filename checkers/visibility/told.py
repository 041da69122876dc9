"""The answer from stale reads: how many, how old, through whom, and proofs for the worst.

Kafka promises that brokers catch up, and not when: without a promise of the run the checks of
visibility are figures, and what was found is legal. A run may promise a greatest age; older reads
are never allowed then. What was seen and could be compared is counted: without any, nothing was
judged.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from checkers.anomaly import ANOMALIES, PROOFS_MAX, Anomaly, anomalies_of
from checkers.proof import Proof
from checkers.verdict import CheckResult, Validity
from checkers.visibility.promise import Promise
from checkers.visibility.stale import StaleReads

__all__ = ["Offsets", "anomalies", "result"]

_EXAMPLES_MAX: Final = 5
"""Operations, offsets and the like, which a read of metadata has none of."""
_NS_A_MS: Final = 1_000_000
_NS_A_S: Final = 1_000_000_000


class Offsets:
    """The metadata offset that each node was known to have, and when: METADATA_OFFSETS."""

    def __init__(self, table: pa.Table) -> None:
        table = table.sort_by("time_ns")
        self._time_ns = table["time_ns"].to_numpy()
        self._offset = table["metadata_offset"].to_numpy()
        self._highest = np.maximum.accumulate(self._offset)
        nodes = np.array(table["node"].to_pylist(), dtype=object)
        self._rows_of = {node: np.flatnonzero(nodes == node) for node in set(nodes.tolist())}

    def words(self, node: str, time_ns: int) -> str:
        """Return in words the offset of a node then, and the furthest node; empty if unknown."""
        rows = self._rows_of.get(node, np.empty(0, dtype=np.int64))
        known = int(np.searchsorted(self._time_ns[rows], time_ns, side="right"))
        if not known:
            return ""
        latest = rows[known - 1]
        all_known = int(np.searchsorted(self._time_ns, time_ns, side="right"))
        return (
            f"; {node} was last known to have metadata offset {self._offset[latest]} "
            f"({_seconds(self._time_ns[latest])} s), others up to {self._highest[all_known - 1]}"
        )


def result(
    check: str,
    found: StaleReads,
    *,
    offsets: Offsets,
    case_count: int,
    seconds: float,
    promise: Promise,
) -> CheckResult:
    """Return the answer of a check, with its figures and the worst few."""
    worst = anomalies(check, found.table, offsets=offsets, count=_EXAMPLES_MAX, promise=promise)
    examples = tuple(anomalies_of(worst))
    never = int(np.count_nonzero(_too_old(found.table, promise)))
    validity, reason = Validity.VALID, ""
    if never:
        validity = Validity.INVALID
        reason = f"{never} found older than {promise.words()}: {examples[0].detail}"
    return CheckResult(
        check=check,
        validity=validity,
        case_count=case_count,
        anomaly_count=len(found.table),
        allowed_count=len(found.table) - never,
        reason=reason,
        figures=dict(_figures(found, promise)),
        seconds=seconds,
        examples=examples,
    )


def anomalies(
    check: str,
    stale: pa.Table,
    *,
    offsets: Offsets,
    count: int = PROOFS_MAX,
    promise: Promise,
) -> pa.Table:
    """Return ANOMALIES of the worst of STALE_READS: those that break a promise, then the oldest."""
    too_old = _too_old(stale, promise)
    order = np.lexsort((-_ages_ns(stale), ~too_old))[:count]
    never = too_old[order].tolist()
    rows = [
        Anomaly(check=check, key=row["key"], allowed=not too_old, proof=_proof(row, offsets)).row()
        for row, too_old in zip(stale.take(pa.array(order)).to_pylist(), never, strict=True)
    ]
    return pa.Table.from_pylist(rows, schema=ANOMALIES)


def _too_old(stale: pa.Table, promise: Promise) -> NDArray[np.bool_]:
    return promise.broken(stale["call_ns"].to_numpy(), stale["known_ns"].to_numpy())


def _proof(row: dict[str, Any], offsets: Offsets) -> Proof:
    return Proof.of(
        "read {read} through {node} (process {process}), called at {called}, showed {seen}; it "
        "lacks {lacks}, known since {known}, {age} before{offsets_told}",
        times={"called": row["call_ns"], "known": row["known_ns"]},
        durations={"age": row["call_ns"] - row["known_ns"]},
        read=row["read"],
        node=row["node"],
        process=row["process"],
        seen=row["seen"],
        lacks=row["lacks"],
        offsets_told=offsets.words(row["node"], row["call_ns"]),
    )


def _figures(found: StaleReads, promise: Promise) -> Iterator[tuple[str, float]]:
    yield "judged_count", found.judged_count
    yield "stale_count", len(found.table)
    yield from _ages("", _ages_ns(found.table))
    settled = found.table.filter(pa.array(promise.settled(found.table["call_ns"].to_numpy())))
    yield "settled_stale_count", len(settled)
    yield from _ages("settled_", _ages_ns(settled))
    for node in sorted(pc.unique(found.table["node"]).to_pylist()):
        of_node = found.table.filter(pc.equal(found.table["node"], node))
        yield f"{_word(node)}_stale_count", len(of_node)
        yield from _ages(f"{_word(node)}_", _ages_ns(of_node))


def _ages(prefix: str, ages_ns: NDArray[np.int64]) -> Iterable[tuple[str, float]]:
    if not len(ages_ns):
        return []
    p50, p99, most = np.quantile(ages_ns, [0.5, 0.99, 1.0], method="higher") / _NS_A_MS
    named = {"p50": p50, "p99": p99, "max": most}
    return [(f"{prefix}age_{name}_ms", float(age_ms)) for name, age_ms in named.items()]


def _ages_ns(stale: pa.Table) -> NDArray[np.int64]:
    ages: NDArray[np.int64] = stale["call_ns"].to_numpy() - stale["known_ns"].to_numpy()
    return ages


def _word(node: str) -> str:
    return node.replace("-", "_")


def _seconds(time_ns: int) -> str:
    return f"{time_ns / _NS_A_S:.3f}"
