"""D23 input-not-once: Committed transactions took input twice, or left some out.

Of one group and key, two transactions that were surely committed (acknowledged, or the only ones at
whose end a committed one can have begun) took an offset both; or one begins behind an offset that
no transaction took which may have been committed. Where one does not begin where its client was
told that the group stands, or where that client's last one ended, and where one leads back, the key
is unknown.

A producer that consumes, transforms and produces takes a range of offsets of each key for a
transaction, from where its group stands to behind the last record, and commits both together. So
the ranges of the transactions that were committed, of one group and key, follow each other without
a gap, and none has an offset of another.

A range counts if its transaction was surely committed: acknowledged, or *continued*, as the start
of a range that counts is its end and no other range that may have been committed ends there. A
range whose outcome is not known fills a gap, and is not held against others.

A client takes from where it was told that its group stands, or from the end of what it committed
last. Both are on its own record. Where a range begins elsewhere, the recording contradicts itself,
and the key is unknown. So is one in which a range leads back: a log that was cut below the group's
position is read from its first offset anew (`auto.offset.reset`), and another record is at an
offset then (D1 tells of losses).

Sound because a transactional id, and with it a group of its own, has one producer at a time: the
next one asks its group once the transactions of the one before it have been ended (KIP-98, fencing;
KIP-447, `require_stable`). Each row is recorded before its offsets are sent. Input that was not
taken before the run ended lies behind the last range, and is not judged.

Meaning: Records were taken in twice, or never: not exactly once.
Case: a range of offsets that a committed transaction took
Source: KIP-98, "consume, transform, produce"; KIP-447
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from fencepost.checkers.anomaly import Found, found, none
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.proof import Proof
from fencepost.checkers.table_check import TableCheck
from fencepost.history.operation import FETCH_OFFSETS, SEND_OFFSETS, Outcome

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.RECORD,
    needs=("group_offsets",),
)
NAME: Final = ENTRY.name


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """The offsets of one key that a transaction took, from the first to before the end."""

    index: int
    start: int
    end: int
    sure: bool
    """It was committed."""


def input_not_once(tables: Tables, _: MetadataView) -> Judged:
    """Yield the findings by key and group. Reads `group_offsets`."""
    taken: dict[tuple[str, str], list[_Range]] = defaultdict(list)
    doubts: dict[tuple[str, str], str] = {}
    positions: dict[tuple[int, str, str], int] = {}
    for row in _rows(tables):
        group, process = row["group"], row["process"]
        ok = row["outcome"] == Outcome.OK.value
        starts = row["offsets_before"] or [None] * len(row["keys"])
        for key, start, end in zip(row["keys"], starts, row["offsets"], strict=False):
            place = process, group, key
            if row["f"] == FETCH_OFFSETS and ok:
                positions[place] = max(0, end)
            elif row["f"] == SEND_OFFSETS and start is not None:
                if doubt := _doubt(row, key, (start, end), positions.get(place)):
                    doubts.setdefault((group, key), doubt)
                # After an end that is not ok it asks its group again.
                positions[place] = end
                if row["outcome"] != Outcome.FAIL.value:
                    one = _Range(index=row["index"], start=start, end=end, sure=ok)
                    taken[group, key].append(one)
    for group, key in sorted(taken.keys() | doubts.keys()):
        told = f"{key} of {group}"
        yield told, _judged(told, taken[group, key], doubts.get((group, key), ""))


def _rows(tables: Tables) -> Iterator[dict[str, Any]]:
    for batch in tables["group_offsets"].sort_by("index").to_batches(max_chunksize=1 << 14):
        yield from batch.to_pylist()


def _doubt(row: Mapping[str, Any], key: str, taken: tuple[int, int], position: int | None) -> str:
    start, end = taken
    if position is None or start != position:
        stands = "was not told where" if position is None else f"stood at {position}"
        return f"row {row['index']} took {key} from {start} on, and its process {stands}"
    return f"row {row['index']} took {key} from {start} back to {end}" if end <= start else ""


def _judged(told: str, taken: Sequence[_Range], doubt: str) -> Found:
    if doubt:
        return none(NAME, told, cases=0, doubt=doubt)
    sure = sorted(_continued(taken), key=lambda one: (one.start, one.index))
    maybe = sorted((one.start, one.end) for one in taken)
    wrong = [*_twice(sure), *_never(sure, maybe)]
    return found(NAME, told, cases=len(sure), never=np.arange(len(wrong)), proof=wrong.__getitem__)


def _continued(taken: Sequence[_Range]) -> list[_Range]:
    """Return the ranges that were surely committed (module docstring)."""
    by_end: dict[int, list[_Range]] = defaultdict(list)
    for one in taken:
        by_end[one.end].append(one)
    sure = {one.index: one for one in taken if one.sure}
    waiting = list(sure.values())
    while waiting:
        last = waiting.pop()
        before = [one for one in by_end[last.start] if one.index < last.index]
        if len(before) == 1 and before[0].index not in sure:
            sure[before[0].index] = before[0]
            waiting.append(before[0])
    return list(sure.values())


def _twice(sure: Sequence[_Range]) -> Iterator[Proof]:
    furthest: _Range | None = None
    for one in sure:
        if furthest is not None and one.start < furthest.end:
            yield Proof.of(
                "rows {row} and {other_row} of group_offsets were both committed, and both took "
                "offsets {first} to {last}",
                offsets={"first": one.start, "last": min(one.end, furthest.end) - 1},
                row=furthest.index,
                other_row=one.index,
            )
        if furthest is None or one.end > furthest.end:
            furthest = one


def _never(sure: Sequence[_Range], maybe: Sequence[tuple[int, int]]) -> Iterator[Proof]:
    """Yield the gaps below the last range that counts, from the first offset on."""
    last = max((one.start for one in sure), default=0)
    reach = 0
    for start, end in maybe:
        if reach < start <= last:
            later = next(one for one in sure if one.start >= start)
            yield Proof.of(
                "row {row} of group_offsets was committed and took from offset {start} on, and no "
                "transaction that may have been committed took offsets {first} to {last}",
                offsets={"start": later.start, "first": reach, "last": start - 1},
                row=later.index,
            )
        reach = max(reach, end)


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=input_not_once,
    ),
)
