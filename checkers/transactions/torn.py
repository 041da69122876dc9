"""D11 torn-transaction: Half of a transaction is readable.

Of a transaction whose commit was acknowledged, or of which a value was read though its commit was
not, an ok read at read_committed returned one value, and no ok read another; of that one's key a
complete final read was called after the acknowledgement (or after the read that shows that it was
committed). Where there was no such final read, the key is unknown.

A transaction is atomic over all its keys: once it is committed, a reader at read_committed is given
each of its records, and before it is, none.

Sound because
- it was surely committed when the commit was acknowledged, or when a read returned a value of it
  (what such a read returned of a transaction that was aborted is D2's, and such transactions are
  not looked at);
- a complete final read goes to the end of a log whose transactions have all ended: the recording
  waits for that, and leaves a key out that is held up (D12);
- a transaction of which nothing was read is lost, not torn (D1, D13), and one whose value was read
  and vanished is D18's.

A transaction writes to several keys, and their records lie in several files. Each file answers for
its keys in as few rows as it can: first the values that were not read, which are few unless much is
wrong; then, for transactions with some of these, who read the others. A key of a file fits in
memory (`checkers.data_plane.key_log`).

Meaning: Consumers acted on a part of what was to happen as a whole.
Case: a committed transaction of which some value was read and several ought to be
Source: KIP-98; Adya, Liskov, O'Neil 2000 (G1b: intermediate reads are of the same kind)
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.anomaly import Found, found
from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.membership import is_among
from fencepost.checkers.proof import Proof
from fencepost.checkers.rows import COLUMNS, FAIL, Rows, split
from fencepost.checkers.runner.tables import SealedFile, keys_in
from fencepost.checkers.setting import FinalRead
from fencepost.history.operation import Outcome

TORN: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.LOG,
    needs=("transactions",),
)

_LISTED_MAX: Final = 8

Row = Mapping[str, Any]
"""A row of SIGHTINGS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspect:
    """A transaction that may be torn: not all its values were read, and not none."""

    index: int
    outcome: Outcome
    return_ns: int | None
    keys: tuple[str, ...]
    values: tuple[int, ...]


def suspects(transactions: pa.Table, *, unread: NDArray[np.int64]) -> tuple[Suspect, ...]:
    """Return the transactions that were or may be committed, with values read and unread."""
    gone = frozenset(unread.tolist())
    return tuple(
        Suspect(
            index=row["index"],
            outcome=Outcome(row["outcome"]),
            return_ns=row["return_ns"],
            keys=tuple(row["keys"]),
            values=tuple(row["values"]),
        )
        for row in _committed(transactions)
        if 0 < len(gone.intersection(row["values"])) < len(set(row["values"]))
    )


def whole_transactions(transactions: pa.Table, *, unread: NDArray[np.int64]) -> Mapping[str, int]:
    """Return how many transactions of several values were read whole, by the first value's key."""
    gone = frozenset(unread.tolist())
    return Counter(
        row["keys"][0]
        for row in _committed(transactions)
        if len(set(row["values"])) > 1 and not gone.intersection(row["values"])
    )


def _committed(transactions: pa.Table) -> Iterator[Row]:
    """Yield the transactions that were or may have been committed."""
    for row in transactions.to_pylist():
        if row["intent"] == "commit" and row["outcome"] != Outcome.FAIL.value:
            yield row


def torn_transactions(
    suspected: Sequence[Suspect],
    *,
    sightings: Iterable[Row],
    final_reads: Iterable[FinalRead],
    whole: Mapping[str, int],
) -> Iterator[tuple[str, Found]]:
    """Yield the findings, by the key of the first value that is missing.

    `sightings`: of every value of the suspects; a value that is not among them was not read.
    `whole`: of `whole_transactions`, which are cases, too.
    """
    seen = {row["value"]: row for row in sightings}
    last_reads = _last_reads(final_reads)
    torn: dict[str, list[Proof]] = {}
    doubtful: dict[str, list[int]] = {}
    for suspect in suspected:
        places = dict(zip(suspect.values, suspect.keys, strict=True))
        missing = [value for value in places if _read_ns(seen.get(value)) is None]
        since_ns = _committed_by(suspect, seen)
        proven = [value for value in missing if last_reads.get(places[value], -1) > since_ns]
        if proven:
            torn.setdefault(places[proven[0]], []).append(_proof(suspect, proven, seen))
        elif missing:
            doubtful.setdefault(places[missing[0]], []).append(suspect.index)
    for key in sorted(torn.keys() | doubtful.keys() | whole.keys()):
        cases = whole.get(key, 0) + len(torn.get(key, []))
        yield key, _found(key, torn.get(key, []), doubtful.get(key, []), cases=cases)


def sightings_in(file: SealedFile, *, values: NDArray[np.int64] | None) -> list[dict[str, Any]]:
    """Return the sightings of a file of `records`, with their keys (`sightings_of_key`)."""
    return [
        row | {"key": key}
        for key, records in keys_in(file, COLUMNS)
        for sends, reads, _ in [split(records)]
        for row in sightings_of_key(sends, reads, values=values)
    ]


def sightings_of_key(
    sends: Rows, reads: Rows, *, values: NDArray[np.int64] | None
) -> Iterator[dict[str, Any]]:
    """Yield a row per send of `values`, or (None) of those that did not fail and were not read.

    `value` and `send`; of the first ok read that returned the value `read`, `read_ns` and `offset`,
    or None.
    """
    seen = np.flatnonzero(reads.ok)
    if values is None:
        unread = ~is_among(sends.value, reads.value[seen])
        wanted = np.flatnonzero(unread & (sends.outcome != FAIL))
    else:
        wanted = np.flatnonzero(is_among(sends.value, values))
    first = _first_rows(reads.value[seen], sends.value[wanted])
    for send, row in zip(wanted.tolist(), first.tolist(), strict=True):
        sighting: dict[str, Any] = dict.fromkeys(("read", "read_ns", "offset"))
        sighting |= {"value": int(sends.value[send]), "send": int(sends.operation[send])}
        if row >= 0:
            read = int(seen[row])
            sighting |= {
                "read": int(reads.operation[read]),
                "read_ns": int(reads.return_ns[read]),
                "offset": int(reads.offset[read]),
            }
        yield sighting


def _last_reads(final_reads: Iterable[FinalRead]) -> dict[str, int]:
    """Return when the last complete final read of each key was called."""
    called: dict[str, int] = {}
    for read in final_reads:
        called[read.key] = max(called.get(read.key, read.call_ns), read.call_ns)
    return called


def _committed_by(suspect: Suspect, seen: Mapping[int, Row]) -> int:
    """Return when the transaction was surely committed: acknowledged, or else first seen."""
    if suspect.outcome is Outcome.OK and suspect.return_ns is not None:
        return suspect.return_ns
    known = (_read_ns(seen.get(value)) for value in suspect.values)
    return min(time_ns for time_ns in known if time_ns is not None)


def _read_ns(sighting: Row | None) -> int | None:
    return None if sighting is None else sighting["read_ns"]


def _proof(suspect: Suspect, missing: Sequence[int], seen: Mapping[int, Row]) -> Proof:
    read = [value for value in suspect.values if _read_ns(seen.get(value)) is not None]
    shown = [*read[:_LISTED_MAX], *missing[:_LISTED_MAX]]
    rows = [seen[value] for value in shown if value in seen]
    places = dict(zip(suspect.values, suspect.keys, strict=True))
    operations = {row[name] for row in rows for name in ("send", "read")} - {None}
    how = "was acknowledged" if suspect.outcome is Outcome.OK else "was committed, as reads show"
    return Proof.of(
        f"transaction {{transaction}} {how}: {{read}} was read, and {{missing}} was returned by "
        "no ok read, nor by the complete final read that was called afterwards",
        operations=tuple(sorted(operations)),
        offsets=tuple(row["offset"] for row in rows if row["offset"] is not None),
        transaction=suspect.index,
        read=_clause(read, places),
        missing=_clause(missing, places),
    )


def _clause(values: Sequence[int], places: Mapping[int, str]) -> Proof:
    shown = [
        Proof.of("value {value} of {key}", values={"value": value}, key=places[value])
        for value in values[:_LISTED_MAX]
    ]
    more = [Proof.of("…")] if len(values) > _LISTED_MAX else []
    return Proof.joined(", ", [*shown, *more])


def _found(key: str, torn: Sequence[Proof], doubtful: Sequence[int], *, cases: int) -> Found:
    doubt = ""
    if doubtful:
        doubt = (
            f"of transaction {doubtful[0]}"
            f"{f' and {len(doubtful) - 1} more' if len(doubtful) > 1 else ''} some values were "
            f"read and others were not, and no complete final read of {key} followed"
        )
    return found(
        TORN.name,
        key,
        cases=cases,
        never=np.arange(len(torn)),
        proof=lambda n: torn[n],
        doubt=doubt,
    )


def _first_rows(among: NDArray[np.int64], values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the row where each value comes first; -1 for an absent value."""
    if not len(among):
        return np.full(len(values), -1, dtype=np.int64)
    order = np.argsort(among, kind="stable")
    place = np.searchsorted(among[order], values)
    place[place == len(among)] = 0
    return np.where(among[order][place] == values, order[place], -1)
