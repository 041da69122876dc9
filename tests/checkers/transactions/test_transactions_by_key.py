"""D9 and D10: what a key's records say of single transactions."""

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa
import pytest
from histories import History, history
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from metadata_logs import asked
from proving import assert_proof, source_of
from small_histories import KEY, histories

from fencepost.checkers.anomaly import anomalies_of
from fencepost.checkers.facts import Facts, Judged
from fencepost.checkers.proof import Proof
from fencepost.checkers.transactions import by_key
from fencepost.checkers.transactions.by_key import precommitted_reads, skipped_sends
from fencepost.history.request_schema import TRANSACTIONS

FACTS = Facts(node_ids={})
NS_A_MS = 1_000_000
SENT = """
    p1 send t-0 v1 -> ok @0
    p2 send t-0 v2 -> ok @{}
    p1 send t-0 v3 -> ok @{}
"""
Transaction = tuple[int | None, Sequence[int]]
"""When its end was asked for, and its values, all of t-0."""


def transactions(*rows: Transaction) -> pa.Table:
    return pa.Table.from_pylist(
        [
            {
                "index": index,
                "process": 0,
                "transactional_id": "x",
                "intent": "commit",
                "begin_ns": 0,
                "end_call_ns": end_ns,
                "outcome": "ok",
                "keys": [KEY] * len(values),
                "values": list(values),
            }
            for index, (end_ns, values) in enumerate(rows)
        ],
        schema=TRANSACTIONS,
    )


def found(judged: Judged, *, allowed: bool) -> list[Proof]:
    return [
        one.proof
        for _, answer in judged
        for one in anomalies_of(answer.table)
        if one.allowed is allowed
    ]


def in_pieces(table: pa.Table) -> pa.Table:
    """A night's tables come batch by batch."""
    return pa.Table.from_batches(table.to_batches(max_chunksize=2), table.schema)


@pytest.fixture(autouse=True)
def _few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_key, "_PENDING", 2)


def skips(past: History, *rows: Transaction) -> list[Proof]:
    tables = {"records": in_pieces(past.records), "transactions": in_pieces(transactions(*rows))}
    assert not found(asked(skipped_sends, tables, FACTS), allowed=False)
    return found(asked(skipped_sends, tables, FACTS), allowed=True)


def early(past: History, *rows: Transaction) -> list[Proof]:
    tables = {"records": in_pieces(past.records), "transactions": in_pieces(transactions(*rows))}
    return found(asked(precommitted_reads, tables, FACTS), allowed=False)


def test_others_stand_between_and_may() -> None:
    (proof,) = skips(history(SENT.format(1, 2)), (50, [1, 3]), (60, [2]))
    assert_proof(
        proof,
        "with {between} records of others",
        transaction=0,
        operation=0,
        value=1,
        offset=0,
        later_operation=2,
        later_value=3,
        later_offset=2,
        between=1,
    )
    assert source_of(proof, "later_value") == "operation 2"


def test_a_gap_and_a_step_back_are_no_skips() -> None:
    assert not skips(history(SENT.format(5, 2)), (50, [1, 3]), (60, [2]))  # offset 1: a marker
    assert not skips(history(SENT.format(1, 2)), (50, [1, 2, 3]))
    assert not skips(history(SENT.format(1, 2)), (50, [3, 1]))  # that is nonmonotonic-send's


def test_a_crashed_send_is_known_by_its_reads_alone() -> None:
    crashed = SENT.format(1, 2).replace("v3 -> ok @2", "v3 -> info")
    assert not skips(history(crashed), (50, [1, 3]))
    assert skips(history(crashed + "c1 poll -> t-0 [v3@2]"), (50, [1, 3]))
    middle = SENT.format(1, 2).replace("v2 -> ok @1", "v2 -> info") + "p3 send t-0 v4 -> ok @1"
    assert not skips(history(middle), (50, [1, 2, 3]))  # the offset of value 2 is not known


def test_a_value_is_read_before_its_commit_was_asked_for() -> None:
    past = history("p1 send t-0 v1 -> ok @0\nc1 poll -> t-0 [v1@0]")
    (proof,) = early(past, (20, [1]))
    times = {"return_": 15 / NS_A_MS, "end": 20 / NS_A_MS}
    rule = "by {return_}, and the client called commit or abort only at {end}"
    assert_proof(proof, rule, operation=1, value=1, transaction=0, **times)
    assert not early(past, (15, [1]))
    assert not early(past, (20, [2]))
    assert not early(past, (None, [1]))  # aborted-read's


def cases(judged: Judged) -> int:
    return sum(answer.case_count for _, answer in judged)


def test_neighbours_of_known_offsets_and_reads_of_what_was_ended_are_the_cases() -> None:
    past = history(SENT.format(1, 2) + "c1 poll -> t-0 [v1@0 v3@2]")
    ended = {"records": past.records, "transactions": transactions((90, [1, 3]))}
    assert cases(asked(skipped_sends, ended, FACTS)) == 1
    assert cases(asked(precommitted_reads, ended, FACTS)) == 2
    alone = {"records": past.records, "transactions": transactions((None, [1]), (None, [3]))}
    assert cases(asked(skipped_sends, alone, FACTS)) == 0
    assert cases(asked(precommitted_reads, alone, FACTS)) == 0


def test_a_crashed_read_and_one_that_was_under_way_prove_nothing() -> None:
    sent = "p1 send t-0 v1 -> ok @0\n"
    assert not early(history(sent + "c1 poll -> info t-0 [v1@0]"), (20, [1]))
    assert not early(history(sent + "c1 poll -> t-0 [v1@0] in 10..25"), (20, [1]))
    assert early(history(sent + "r1 final t-0 -> [v1@0] in 10..19"), (20, [1]))


def test_values_that_are_not_unique_tell_nothing() -> None:
    past = history("p1 send t-0 v1 -> ok @0\np1 send t-0 v1 -> ok @1\nc1 poll -> t-0 [v1@0]")
    tables = {"records": past.records, "transactions": transactions((90, [1]))}
    for kernel in (skipped_sends, precommitted_reads):
        (judged,) = asked(kernel, tables, FACTS)
        assert (judged[1].doubt, judged[1].case_count) == ("two sends carry one value", 0)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(histories(), st.lists(st.integers(1, 8), unique=True, max_size=8), st.data())
def test_the_kernels_agree_with_a_slow_look_at_every_pair(
    past: History, order: list[int], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(order)))
    rows = [
        (data.draw(st.sampled_from([None, 5, 9, 14])), part) for part in (order[:cut], order[cut:])
    ]
    records = past.records.to_pylist()
    assert len(early(past, *rows)) == len(_slow_early(records, rows))
    assert len(skips(past, *rows)) == len(_slow_skips(records, rows))


Row = dict[str, object]


def _slow_early(records: list[Row], rows: Sequence[Transaction]) -> list[Row]:
    return [
        row
        for row in records
        for end_ns, values in rows
        if row["f"] != "send"
        and row["outcome"] == "ok"
        and row["value"] in values
        and end_ns is not None
        and row["return_ns"] < end_ns  # type: ignore[operator]
    ]


def _slow_skips(records: list[Row], rows: Sequence[Transaction]) -> list[tuple[int, int]]:
    told = [
        row
        for row in records
        if row["offset"] is not None and (row["f"] != "send" or row["outcome"] == "ok")
    ]
    offsets = sorted({row["offset"] for row in told})  # type: ignore[type-var]
    place: dict[object, int] = {}
    for row in told:
        place.setdefault(row["value"], offsets.index(row["offset"]))
    return [
        (one, two)
        for _, values in rows
        for one, two in pairwise(values)
        if one in place and two in place and place[two] - place[one] > 1
    ]
