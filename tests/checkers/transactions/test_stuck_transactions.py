"""Transactions that are refused, one after the other, though nothing is broken."""

from typing import Any

import pyarrow as pa
import pytest
from metadata_logs import asked
from proving import assert_proof

from fencepost.checkers.anomaly import Found, anomalies_of
from fencepost.checkers.facts import Facts
from fencepost.checkers.transactions.stuck_transactions import stuck_transactions
from fencepost.history.request_schema import TRANSACTIONS
from fencepost.history.schema import FAULTS

Row = dict[str, Any]
NS = 1_000_000_000
NO_FAULTS = FAULTS.empty_table()
REFUSED = {"intent": "abort", "outcome": "ok", "failure": "NOT_ENOUGH_REPLICAS", "fatal": False}
COMMITTED = {"intent": "commit", "outcome": "ok"}
OPEN = {"intent": "commit", "outcome": "info"}


def one(begin_s: float, what: Row, *, key: str = "t-0", **other: Any) -> Row:
    """A transaction of 0.4 s."""
    called = {"begin_ns": int(begin_s * NS), "return_ns": int((begin_s + 0.4) * NS)}
    return called | {"process": 0, "transactional_id": "x", "keys": [key]} | what | other


def each_second(begin_s: int, end_s: int, what: Row, **other: Any) -> list[Row]:
    return [one(second, what, **other) for second in range(begin_s, end_s)]


def faults(*spans: tuple[int, int | None]) -> pa.Table:
    rows = [
        {
            "index": index,
            "fault": "kill",
            "targets": ["broker-1"],
            "begin_ns": begin_s * NS,
            "end_ns": None if end_s is None else end_s * NS,
        }
        for index, (begin_s, end_s) in enumerate(spans)
    ]
    return pa.Table.from_pylist(rows, schema=FAULTS)


def founds(*rows: Row, faults: pa.Table = NO_FAULTS, limit_s: int = 20) -> dict[str, Found]:
    ordered = sorted(rows, key=lambda row: row["begin_ns"])
    numbered = [row | {"index": n, "values": [n]} for n, row in enumerate(ordered)]
    table = pa.Table.from_pylist(numbered, schema=TRANSACTIONS)
    facts = Facts(node_ids={}, stuck_isr_limit_ns=limit_s * NS)
    return dict(asked(stuck_transactions, {"transactions": table, "faults": faults}, facts))


def answer(*rows: Row, faults: pa.Table = NO_FAULTS) -> str:
    found = founds(*rows, faults=faults)["t-0"]
    return "anomaly" if found.never_count else "doubt" if found.doubt else ""


STUCK = each_second(0, 22, REFUSED)


def test_refusals_for_longer_than_the_bound_are_found_with_their_transactions() -> None:
    found = founds(*STUCK, one(30, COMMITTED))["t-0"]
    (anomaly,) = anomalies_of(found.table)
    assert_proof(
        anomaly.proof,
        "nothing was broken",
        count=22,
        key="t-0",
        transactions="[0, 1, 2, 21]",
        since=0,
        until=21_400,
        limit=20_000,
        error="NOT_ENOUGH_REPLICAS",
        refused=22,
    )
    assert found.case_count == 2


def test_a_committed_transaction_is_a_case_of_each_key_that_it_wrote_to() -> None:
    found = founds(one(0, COMMITTED, keys=["t-0", "t-1", "t-1"]), one(1, COMMITTED))
    assert {key: each.case_count for key, each in found.items()} == {"t-0": 2, "t-1": 1}


def test_refusals_of_other_keys_do_not_end_those_of_one() -> None:
    found = founds(*STUCK, *each_second(0, 25, COMMITTED, key="t-1", transactional_id="y"))
    assert [found[key].never_count for key in ("t-0", "t-1")] == [1, 0]


def test_a_stretch_is_counted_from_the_last_commit_or_what_may_be_one() -> None:
    assert answer(*STUCK, one(23, COMMITTED)) == "anomaly"
    assert answer(*STUCK[:11], one(10.5, COMMITTED), *STUCK[11:], one(23, COMMITTED)) == ""
    crashed = one(10.5, OPEN, return_ns=None)
    assert answer(*STUCK[:11], crashed, *STUCK[11:], one(23, COMMITTED)) == ""
    unknown = one(10.5, OPEN, error="REQUEST_TIMED_OUT")
    assert answer(*STUCK[:11], unknown, *STUCK[11:], one(23, COMMITTED)) == ""
    # A commit that was acknowledged amid a refused one begins the stretch.
    amid = one(0.1, COMMITTED, return_ns=int(0.3 * NS))
    assert answer(amid, *STUCK) == "anomaly"


@pytest.mark.parametrize(
    "spans",
    [[(0, 2)], [(10, 11)], [(20, None)], [(0, None)]],
    ids=["before", "amid", "last", "all"],
)
def test_nothing_is_held_against_a_cluster_with_a_fault_in_that_time(
    spans: list[tuple[int, int | None]],
) -> None:
    assert answer(*STUCK, one(30, COMMITTED), faults=faults(*spans)) == ""


def test_a_fault_that_ended_before_is_no_excuse() -> None:
    later = each_second(5, 27, REFUSED)
    assert answer(*later, one(30, COMMITTED), faults=faults((0, 4))) == "anomaly"


def test_clients_that_paused_were_not_refused_all_the_time() -> None:
    assert answer(*STUCK[:5], *STUCK[8:], one(23, COMMITTED)) == ""
    assert answer(*STUCK[:5], *STUCK[6:], one(23, COMMITTED)) == "anomaly"


@pytest.mark.parametrize(
    "failure",
    ["_MSG_TIMED_OUT", "REQUEST_TIMED_OUT", "PRODUCER_FENCED", "MSG_SIZE_TOO_LARGE", None],
)
def test_what_the_cluster_did_not_say_or_had_to_say_is_no_refusal(failure: str | None) -> None:
    assert answer(*each_second(0, 22, REFUSED | {"failure": failure})) == ""


def test_producers_that_share_an_id_fence_each_other_for_ever() -> None:
    other = [one(second + 0.2, REFUSED, process=1) for second in range(22)]
    assert answer(*STUCK, *other) == ""
    # Those that follow each other do not.
    assert answer(*STUCK[:11], *each_second(11, 22, REFUSED, process=1)) == "anomaly"


def test_where_the_clients_end_before_the_bound_it_is_unknown() -> None:
    assert answer(one(0, COMMITTED), *STUCK[2:15]) == "doubt"
    assert answer(*STUCK[:3]) == "doubt"
    assert answer(*STUCK[:2]) == ""
    assert answer(*STUCK[:15], one(16, COMMITTED)) == ""


def test_what_says_nothing_of_refusals_accuses_nobody() -> None:
    assert not founds()
    assert answer(*each_second(0, 22, REFUSED | {"failure": None})) == ""
    assert not founds(*STUCK, limit_s=0)
