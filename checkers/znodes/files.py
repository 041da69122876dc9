"""The work on one file of znode operations: every znode judged, and the operations counted.

The unit is a znode: its operations are in one file, and a task holds one file. What a kernel cannot
understand costs its znode the answer, and no other.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, Final

import pyarrow as pa

from checkers.anomaly import Found
from checkers.finding_rows import found_row, unknown_row
from checkers.grounds.operations import FaultWindow
from checkers.runner.tables import SealedFile, rows_in
from checkers.znodes import linearizable, lost_writes, sessions, stale_reads, zxids
from checkers.znodes.linearizable import found_of, judgement
from checkers.znodes.lost_writes import lost_writes as lost_writes_of
from checkers.znodes.operations import ZnodeOperation, znodes_of
from checkers.znodes.sessions import sessions_that_went_back
from checkers.znodes.stale_reads import Disturbance, stale_sync_reads
from checkers.znodes.zxids import zxids_out_of_order

__all__ = ["TABLE", "FileFindings", "FileWork", "Tally", "over_all"]

TABLE: Final = "znode_operations"
_SHORTEST_NS: Final = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """The operations of a file, counted."""

    row_count: int
    first_index: int | None
    last_index: int | None
    ok: Mapping[str, int] = field(default_factory=dict)
    """The ok operations, by f."""
    served: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """The ok writes ("write") and sync reads ("read") that were called during a kind of fault, by
    the kind and what they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFindings:
    """The findings of one task, about the znodes of a file."""

    rows: list[dict[str, Any]]
    """FINDINGS but their paths."""
    tally: Tally


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWork:
    """The work."""

    broken: Sequence[Disturbance]
    """When something was broken, from the begin of each fault on."""
    windows: Sequence[FaultWindow]
    """When faults were in effect."""

    def __call__(self, file: SealedFile) -> FileFindings:
        """Judge the znodes of a file. Raises HarnessError, naming it, if it cannot be read."""
        table = rows_in(file, TABLE)
        rows = [row for key, part in _by_key(table) for row in self._of_key(key, part)]
        return FileFindings(rows=rows, tally=self._tally(table))

    def _of_key(self, key: str, part: pa.Table) -> Iterator[dict[str, Any]]:
        names = (linearizable.NAME, stale_reads.NAME, lost_writes.NAME)
        started = perf_counter()
        try:
            found = self._found(key, znodes_of(part))
        except Exception as error:  # noqa: BLE001  # one znode must not silence the others
            reason = f"the check crashed on {key}: {type(error).__name__}: {error}"
            rows = [unknown_row(name, reason, seconds=0.0) for name in names]
        else:
            rows = [found_row(name, one) for name, one in zip(names, found, strict=True)]
        seconds = (perf_counter() - started) / len(names)
        for row in rows:
            yield row | {"key": key, "seconds": seconds}

    def _found(self, key: str, operations: Sequence[ZnodeOperation]) -> tuple[Found, ...]:
        judged = judgement(operations)
        return (
            found_of(key, judged),
            stale_sync_reads(key, operations, judged, self.broken),
            lost_writes_of(key, operations),
        )

    def _tally(self, table: pa.Table) -> Tally:
        ok: Counter[str] = Counter()
        served: Counter[tuple[str, str]] = Counter()
        columns = [table[name].to_pylist() for name in ("f", "outcome", "call_ns", "index")]
        for f, outcome, call, _ in zip(*columns, strict=True):
            if outcome != "ok":
                continue
            ok[f] += 1
            what = "read" if f == "sync-read" else "" if f.endswith("read") else "write"
            for kind in {one.kind for one in self.windows if _covers(one, call)} if what else ():
                served[kind, what] += 1
        indices = columns[-1]
        return Tally(
            row_count=len(indices),
            first_index=min(indices, default=None),
            last_index=max(indices, default=None),
            ok=dict(ok),
            served=dict(served),
        )


def _covers(window: FaultWindow, call: int) -> bool:
    """Return whether something was called during a fault, which lasts a second at least."""
    return window.effect_ns <= call <= max(window.end_ns, window.effect_ns + _SHORTEST_NS)


def over_all(files: Sequence[SealedFile]) -> list[dict[str, Any]]:
    """Judge the zxids and the sessions, over all znodes: FINDINGS but their paths.

    A task holds the history: a session uses every znode. Raises HarnessError, naming the file, if
    one cannot be read.
    """
    tables = ((key, part) for file in files for key, part in _by_key(rows_in(file, TABLE)))
    by_key = {key: znodes_of(part) for key, part in tables}
    ordered = zxids_out_of_order(by_key)
    went_back = sessions_that_went_back(by_key, doubt=_doubt(found for _, found in ordered))
    return [
        found_row(name, found) | {"key": key, "seconds": 0.0}
        for name, findings in ((zxids.NAME, ordered), (sessions.NAME, went_back))
        for key, found in findings
    ]


def _doubt(ordered: Iterable[Found]) -> str:
    wrong = next((found for found in ordered if found.never_count), None)
    return "" if wrong is None else f"zxids are no order: {wrong.table['detail'][0].as_py()}"


def _by_key(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield each znode with its rows; those of one follow each other."""
    keys = table["key"].to_pylist()
    start = 0
    for end in range(1, len(keys) + 1):
        if end == len(keys) or keys[end] != keys[start]:
            yield keys[start], table.slice(start, end - start)
            start = end
