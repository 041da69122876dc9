"""D11: some values of a committed transaction are readable, and some are not."""

import numpy as np
import pyarrow as pa
from histories import history
from hypothesis import given
from hypothesis import strategies as st
from judging import setting_of
from proving import assert_proof

from fencepost.checkers.anomaly import Found, anomalies_of
from fencepost.checkers.rows import COLUMNS, split
from fencepost.checkers.transactions.torn import (
    sightings_of_key,
    suspects,
    torn_transactions,
    whole_transactions,
)
from fencepost.history.request_schema import TRANSACTIONS

Torn = dict[str, list[tuple[int, ...]]]


def transaction(
    keys: str, *values: int, outcome: str = "ok", intent: str = "commit", return_ns: int = 25
) -> dict[str, object]:
    """A transaction that wrote these values, one to each of the keys, "t-0 t-1"."""
    return {
        "process": 0,
        "transactional_id": "x",
        "intent": intent,
        "begin_ns": 0,
        "end_call_ns": 20,
        "return_ns": None if outcome == "info" else return_ns,
        "outcome": outcome,
        "keys": keys.split(),
        "values": list(values),
    }


def judged(text: str, *transactions: dict[str, object]) -> tuple[Torn, set[str]]:
    """The values named by each anomaly, by key; and the keys in doubt."""
    found = founds(text, *transactions)
    torn = {key: [tuple(v) for v in one.table["values"].to_pylist()] for key, one in found.items()}
    return {key: v for key, v in torn.items() if v}, {k for k, one in found.items() if one.doubt}


def cases(text: str, *transactions: dict[str, object]) -> int:
    """How many transactions were judged."""
    return sum(one.case_count for one in founds(text, *transactions).values())


def founds(text: str, *transactions: dict[str, object]) -> dict[str, Found]:
    """What is found of these transactions, by key."""
    past = history(text)
    table = pa.Table.from_pylist(
        [row | {"index": index} for index, row in enumerate(transactions)], schema=TRANSACTIONS
    )
    keys = sorted(set(past.records["key"].to_pylist()))
    logs = {key: split(past.of_key(key).select(COLUMNS))[:2] for key in keys}
    rows = [row for log in logs.values() for row in sightings_of_key(*log, values=None)]
    unread = np.array([row["value"] for row in rows], dtype=np.int64)
    suspected = suspects(table, unread=unread)
    wanted = np.array([value for one in suspected for value in one.values], dtype=np.int64)
    seen = [
        {"read": None, "read_ns": None, "offset": None} | row
        for log in logs.values()
        for row in sightings_of_key(*log, values=wanted)
    ]
    return dict(
        torn_transactions(
            suspected,
            sightings=seen,
            final_reads=setting_of(past).final_reads,
            whole=whole_transactions(table, unread=unread),
        )
    )


WHOLE = """
    p1 send t-0 v1 -> ok @0
    p1 send t-1 v2 -> ok @0
    c1 poll -> t-0 [v1@0]
    r1 final t-0 -> [v1@0]
    r1 final t-1 -> [v2@0]
    """
HALF = WHOLE.replace("-> [v2@0]", "-> []")


def test_a_committed_transaction_of_which_one_value_is_gone_is_torn() -> None:
    assert judged(HALF, transaction("t-0 t-1", 1, 2)) == ({"t-1": [(1, 2)]}, set())


def test_a_committed_transaction_that_is_read_whole_is_not() -> None:
    assert judged(WHOLE, transaction("t-0 t-1", 1, 2)) == ({}, set())


def test_the_proof_names_who_read_the_one_and_who_sent_both() -> None:
    past = history(HALF)
    seen = [
        {"value": 1, "send": 0, "read": 2, "read_ns": 25, "offset": 0},
        {"value": 2, "send": 1, "read": None, "read_ns": None, "offset": None},
    ]
    table = pa.Table.from_pylist([transaction("t-0 t-1", 1, 2) | {"index": 0}], schema=TRANSACTIONS)
    suspected = suspects(table, unread=np.array([2]))
    ((key, found),) = torn_transactions(
        suspected, sightings=seen, final_reads=setting_of(past).final_reads, whole={}
    )
    (one,) = anomalies_of(found.table)
    assert (key, one.operations, one.offsets) == ("t-1", (0, 1, 2), (0,))
    assert_proof(
        one,
        "was returned by no ok read, nor by the complete final read",
        transaction=0,
        value=1,
        key="t-0",
        missing_value=2,
        missing_key="t-1",
    )


def test_of_an_unacknowledged_commit_a_value_that_was_read_shows_that_it_happened() -> None:
    indefinite = HALF.replace("-> ok @0", "-> info")
    row = transaction("t-0 t-1", 1, 2, outcome="info")
    assert judged(indefinite, row) == ({"t-1": [(1, 2)]}, set())


def test_of_an_unacknowledged_commit_nothing_needs_to_be_read() -> None:
    text = """
        p1 send t-0 v1 -> info
        p1 send t-1 v2 -> info
        r1 final t-0 -> []
        r1 final t-1 -> []
        """
    assert judged(text, transaction("t-0 t-1", 1, 2, outcome="info")) == ({}, set())


def test_an_aborted_transaction_is_none_of_its_business() -> None:
    aborted = HALF.replace("-> ok @0", "-> fail")
    assert judged(aborted, transaction("t-0 t-1", 1, 2, intent="abort")) == ({}, set())


def test_a_transaction_of_which_nothing_was_read_is_lost_and_not_torn() -> None:
    text = """
        p1 send t-0 v1 -> ok @0
        p1 send t-1 v2 -> ok @0
        r1 final t-0 -> []
        r1 final t-1 -> []
        """
    assert judged(text, transaction("t-0 t-1", 1, 2)) == ({}, set())


def test_a_key_without_a_final_read_after_the_commit_is_a_doubt() -> None:
    assert judged(HALF, transaction("t-0 t-1", 1, 2, return_ns=45)) == ({}, {"t-1"})
    unread = "\n".join(line for line in HALF.splitlines() if "final t-1" not in line)
    assert judged(unread, transaction("t-0 t-1", 1, 2)) == ({}, {"t-1"})


def test_what_is_judged_is_each_transaction_of_several_values_that_was_read_at_all() -> None:
    row = transaction("t-0 t-1", 1, 2)
    assert cases(HALF, row) == cases(WHOLE, row) == 1
    assert cases(HALF, transaction("t-0 t-1", 1, 2, return_ns=45)) == 0  # In doubt.
    assert cases(WHOLE, transaction("t-0", 1)) == 0
    assert cases(WHOLE) == 0


def test_a_final_read_that_crashed_proves_nothing() -> None:
    crashed = HALF.replace("final t-1 -> []", "final t-1 -> info []")
    assert judged(crashed, transaction("t-0 t-1", 1, 2)) == ({}, {"t-1"})


@given(
    st.lists(st.lists(st.booleans(), min_size=1, max_size=4), min_size=1, max_size=5),
    st.lists(st.sampled_from(["ok", "info"]), min_size=5, max_size=5),
)
def test_exactly_the_transactions_with_read_and_unread_values_are_torn(
    read: list[list[bool]], outcomes: list[str]
) -> None:
    """`read`: of each value of each transaction, whether the final read returned it."""
    transactions, lines, log, value = [], [], [], 0
    expected = several = 0
    for of_values, outcome in zip(read, outcomes, strict=False):
        values = range(value, value + len(of_values))
        value += len(of_values)
        transactions.append(
            transaction(" ".join(["t-0"] * len(values)), *values, outcome=outcome, return_ns=1)
        )
        at = "@{}" if outcome == "ok" else ""
        lines += [f"p1 send t-0 v{v} -> {outcome} {at.format(v)} in 0..1" for v in values]
        log += [f"v{v}@{v}" for v, seen in zip(values, of_values, strict=True) if seen]
        expected += 0 < sum(of_values) < len(of_values)
        several += any(of_values) and len(of_values) > 1
    lines.append(f"c1 poll -> t-0 [{' '.join(log)}] in 2..3")
    lines.append(f"r1 final t-0 -> [{' '.join(log)}] in 4..5")
    torn, doubt = judged("\n".join(lines), *transactions)
    assert (len(torn.get("t-0", [])), doubt) == (expected, set())
    assert cases("\n".join(lines), *transactions) == several
