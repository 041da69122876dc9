"""D27 stuck-transactions: Transactions are refused one after the other though nothing is broken.

For longer than the scenario's bound (`recovery_limit`) every transaction that wrote to a key was
refused, by an answer that puts the client off or that finds fault with the state of its
transaction, none was committed or may have been, the clients went on trying, and no fault was in
effect. Time-outs, fenced producers and producers that share a transactional id do not count.
Unknown if the clients end before the bound has passed.

A cluster with whole nodes and links commits transactions. It may refuse some (a leader moves, a
coordinator loads), and says by the error that this passes. It has as long for that as the scenario
gives it to be whole (`recovery_limit`).

No fault may be in effect, nor the machine stand still, from the first begin to the last return; and
no client waits a tenth of the bound before it begins the next one.

Only answers of the cluster count by which it puts a client off, or finds a fault with the state of
a transaction that its client keeps in order (`_REFUSALS`). A time-out is no answer: a busy machine
may be slow, and `long-silence` has a bound for that. Nor does a refusal count that another producer
or the scenario may have caused: one that was fenced, a record that is too large, a version or a
permission that is lacking. Producers that were seen to share a transactional id fence each other
for ever, so none of theirs counts.

An instance that gets no producer id begins no transaction, and is not seen here; if none ever does,
`operation-kinds` leaves the run unknown. So do runs whose clients did not record refusals.

Meaning: Applications that write in transactions stand still, and no node looks ill.
Case: a transaction of a key that was committed, or a stretch of refusals that long
Source: KIP-98; KIP-890; KAFKA-16692
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.spans import FOREVER_NS, Span, outside
from fencepost.checkers.table_check import TableCheck
from fencepost.history.operation import Outcome

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.STANDSTILL,
    needs=("transactions",),
)
NAME: Final = ENTRY.name
_REFUSALS: Final = frozenset(
    {
        *("LEADER_NOT_AVAILABLE", "NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"),
        *("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "NETWORK_EXCEPTION"),
        *("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"),
        *("CONCURRENT_TRANSACTIONS", "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE"),
        *("OUT_OF_ORDER_SEQUENCE_NUMBER", "UNKNOWN_PRODUCER_ID", "UNKNOWN_SERVER_ERROR"),
    }
)
_GAPS: Final = 10
"""The bound, divided by this, is the longest gap between two tries of one stretch."""
_LISTED_MAX: Final = 3

Row = Mapping[str, Any]
"""A row of TRANSACTIONS."""


@dataclass(slots=True)
class _Stretch:
    since_ns: int
    calm: Span
    refused: list[Row] = field(default_factory=list)

    @property
    def until_ns(self) -> int:
        return int(self.refused[-1]["return_ns"])

    @property
    def length_ns(self) -> int:
        return self.until_ns - self.since_ns


def stuck_transactions(tables: Tables, seen: MetadataView) -> Judged:
    """Judge the transactions of every key. Reads `transactions` and `faults`."""
    limit_ns = seen.run.stuck_isr_limit_ns
    if not limit_ns:
        return
    faults = tables["faults"].select(["begin_ns", "end_ns"]).to_pylist()
    calm = list(outside(_span(row["begin_ns"], row["end_ns"]) for row in faults))
    rows = tables["transactions"].to_pylist()
    shared = _shared(rows)
    of_key: dict[str, list[Row]] = {}
    for row in rows:
        for key in dict.fromkeys(row["keys"]):
            of_key.setdefault(key, []).append(row)
    for key, mine in sorted(of_key.items()):
        ends_ns = _ends_ns(mine)
        refused = [
            row for row in mine if _is_refusal(row) and row["transactional_id"] not in shared
        ]
        stretches = list(_stretches(refused, ends_ns, calm, gap_ns=limit_ns // _GAPS))
        late = [one for one in stretches if one.length_ns > limit_ns]
        doubt = ""
        if (
            stretches
            and stretches[-1] not in late
            and _is_open(stretches[-1], mine, ends_ns, least_ns=limit_ns // _GAPS)
        ):
            doubt = (
                f"{_told(key, stretches[-1]).sentence}, where the clients ended before the bound"
            )
        committed = sum(_is_committed(row) for row in mine)
        proofs = [_proof(key, one, limit_ns) for one in late]
        yield key, spelled(NAME, key, proofs, cases=committed + len(late), doubt=doubt)


def _stretches(
    refused: Sequence[Row], ends_ns: Sequence[int], calm: Sequence[Span], *, gap_ns: int
) -> Iterator[_Stretch]:
    """Yield the stretches of a key by time. `ends_ns`: when one may have been committed, sorted."""
    now: _Stretch | None = None
    for row in sorted(refused, key=lambda row: int(row["return_ns"])):
        begin_ns, return_ns = row["begin_ns"], row["return_ns"]
        place = bisect_right(calm, begin_ns, key=lambda span: span.from_ns) - 1
        if place < 0 or return_ns > calm[place].until_ns:
            continue
        before = bisect_right(ends_ns, return_ns)
        last_end_ns = ends_ns[before - 1] if before else 0
        if (
            now is None
            or now.calm is not calm[place]
            or last_end_ns > now.since_ns
            or begin_ns - now.until_ns > gap_ns
        ):
            if now is not None:
                yield now
            now = _Stretch(max(begin_ns, last_end_ns), calm[place])
        now.refused.append(row)
    if now is not None:
        yield now


def _ends_ns(rows: Sequence[Row]) -> list[int]:
    """Return the times at which a transaction was or may have been committed, sorted."""
    found = []
    for row in rows:
        if _is_committed(row):
            found.append(row["return_ns"])
        elif row["outcome"] == Outcome.INFO and row["intent"] == "commit":
            found += [one for one in (row["begin_ns"], row["return_ns"]) if one is not None]
    return sorted(found)


def _is_committed(row: Row) -> bool:
    return bool(row["intent"] == "commit" and row["outcome"] == Outcome.OK)


def _is_refusal(row: Row) -> bool:
    return row["failure"] in _REFUSALS and row["return_ns"] is not None


def _is_open(last: _Stretch, rows: Sequence[Row], ends_ns: Sequence[int], *, least_ns: int) -> bool:
    """Return whether a stretch of some length went on until the clients ended."""
    went_on = not ends_ns or ends_ns[-1] <= last.since_ns
    is_last = all(row["begin_ns"] <= last.until_ns for row in rows)
    return went_on and is_last and last.length_ns > least_ns


def _shared(rows: Sequence[Row]) -> frozenset[str]:
    """Return the transactional ids of which two processes had transactions at a time."""
    held: dict[str, tuple[int, int]] = {}
    found = set()
    for row in rows:
        one, process = row["transactional_id"], row["process"]
        end_ns = row["return_ns"] or row["begin_ns"]
        other, until_ns = held.get(one, (process, end_ns))
        if other != process and row["begin_ns"] < until_ns:
            found.add(one)
        held[one] = (process, end_ns)
    return frozenset(found)


def _span(begin_ns: int, end_ns: int | None) -> Span:
    return Span(from_ns=begin_ns, until_ns=FOREVER_NS if end_ns is None else end_ns)


def _told(key: str, one: _Stretch) -> Proof:
    errors = [
        Proof.of("{refused} with {error}", error=error, refused=count)
        for error, count in Counter(row["failure"] for row in one.refused).most_common()
    ]
    listed = [row["index"] for row in (*one.refused[:_LISTED_MAX], one.refused[-1])]
    return Proof.of(
        "from {since} until {until} {count} transactions that wrote to {key} were refused "
        "({errors}), and none was committed: transactions {transactions}",
        values=sorted({value for row in one.refused[:_LISTED_MAX] for value in row["values"]}),
        times={"since": one.since_ns, "until": one.until_ns},
        count=len(one.refused),
        key=key,
        errors=Proof.joined(", ", errors),
        transactions=list(dict.fromkeys(listed)),
    )


def _proof(key: str, one: _Stretch, limit_ns: int) -> Proof:
    return _told(key, one).further(
        "; all that time nothing was broken, and the bound is {limit}",
        durations={"limit": limit_ns},
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=stuck_transactions,
        tables=("transactions", "faults"),
    ),
)
