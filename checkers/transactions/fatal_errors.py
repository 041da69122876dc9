"""D29 fatal-error: A transactional client was told an error that ends it.

More transactions than `require: {fatal_errors_max: …}` had an error of which the client library
says that this instance can do nothing more.

A client library sorts the errors of a transaction: some it may try again, most leave an abort, and
the rest end the client for good, which an application has to build anew. Kafka promises an abort
for what may happen to any producer: a transaction that timed out, a coordinator that moved
(KIP-360, KIP-890). Whether an error that ends a client was due depends on all that its broker knew
when it answered, and in which order: a record that is refused because its transaction has ended is
refused rightly with INVALID_TXN_STATE while the marker is not in the log yet, and wrongly after it,
where the newer epoch of the marker has to be said. No table tells the order within a broker. So
this check compares with the scenario's promise alone: the number of transactions that may end their
client (`require: {fatal_errors_max: 0}`). A scenario whose producers share a transactional id
cannot promise that: they end each other.

It is asked of runs alone whose scenario has that bound. Each error counts that a client recorded,
whatever it was about: a record, offsets, the commit or the abort.

Meaning: Applications have to build a new producer where an abort would have done, or they end.
Case: a transaction of a transactional id
Source: KIP-360; KIP-890; KIP-1050; KAFKA-19690
"""

from typing import Any, Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.table_check import TableCheck

_BOUND: Final = "fatal_errors_max_count"
ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.CLIENT,
    needs=("transactions",),
    bound=_BOUND,
)
NAME: Final = ENTRY.name


def fatal_errors(tables: Tables, seen: MetadataView) -> Judged:
    """Judge the transactions of each transactional id. Reads `transactions`."""
    of_id: dict[str, list[dict[str, Any]]] = {}
    for row in tables["transactions"].to_pylist():
        of_id.setdefault(row["transactional_id"], []).append(row)
    fatal = {one: [row for row in rows if row["fatal"]] for one, rows in of_id.items()}
    bound = seen.run.bounds.get(_BOUND, 0)
    over = sum(map(len, fatal.values())) > bound
    for one, rows in sorted(of_id.items()):
        proofs = [_proof(row) for row in fatal[one]] if over else []
        yield one, spelled(NAME, one, proofs, cases=len(rows))


def _proof(row: dict[str, Any]) -> Proof:
    error = row["error"] or row["failure"]
    last = "" if error == row["failure"] else ", and then {error}"
    words = {"error": error} if last else {}
    return Proof.of(
        "transaction {transaction} of {transactional_id}, begun at {begin}, was told {failure}"
        f"{last}, and its client can do nothing more",
        values=row["values"],
        times={"begin": row["begin_ns"]},
        transaction=row["index"],
        transactional_id=row["transactional_id"],
        failure=row["failure"],
        **words,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=fatal_errors,
    ),
)
