"""D12: a transaction that cannot be ended holds up the readers."""

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pytest

from fencepost.checkers.anomaly import Found
from fencepost.checkers.transactions.hanging import hanging_transactions
from fencepost.checkers.transactions.open_transactions import OpenTransaction, open_transactions
from fencepost.history.cluster_schema import REPLICA_RECORDS
from fencepost.history.request_schema import STABLE_OFFSETS, TRANSACTIONS

Row = dict[str, object]


def log(node: str, text: str, *, key: str = "t-0") -> list[Row]:
    """A replica's log: "1:v5 1:v6 1:abort 2:v7", by producer id; `-` for a plain record."""
    rows: list[Row] = []
    for offset, word in enumerate(text.split()):
        producer, _, what = word.rpartition(":")
        control = what in ("commit", "abort")
        rows.append(
            {
                "key": key,
                "node": node,
                "offset": offset,
                "leader_epoch": 0,
                "timestamp_ms": 0,
                "control": control,
                "committed": what == "commit" if control else None,
                "transactional": producer != "-",
                "producer_id": -1 if producer == "-" else int(producer),
                "producer_epoch": 0,
                "value": None if control else int(what[1:]),
                "digest": 0,
            }
        )
    return rows


def left_open(*logs: Sequence[Row]) -> list[OpenTransaction]:
    rows = [row for one in logs for row in one]
    return list(open_transactions(pa.Table.from_pylist(rows, schema=REPLICA_RECORDS)))


def hanging(
    *observed: tuple[int, int, bool], wrote: Sequence[str] = ("t-0",), logs: Sequence[Row] = ()
) -> dict[str, str]:
    """Anomaly, doubt or nothing of each key; (last stable offset, high watermark, due) of t-0."""
    return {
        key: "anomaly" if one.never_count else "doubt" if one.doubt else ""
        for key, one in founds(*observed, wrote=wrote, logs=logs)
    }


def cases(*observed: tuple[int, int, bool], wrote: Sequence[str] = ("t-0",)) -> int:
    """How many keys were judged."""
    return sum(one.case_count for _, one in founds(*observed, wrote=wrote))


def founds(
    *observed: tuple[int, int, bool], wrote: Sequence[str], logs: Sequence[Row] = ()
) -> Iterator[tuple[str, Found]]:
    stable = [
        {
            "time_ns": number,
            "key": "t-0",
            "last_stable_offset": lso,
            "high_watermark": end,
            "due": due,
        }
        for number, (lso, end, due) in enumerate(observed)
    ]
    transaction = {
        "index": 0,
        "process": 0,
        "transactional_id": "x",
        "intent": "abort",
        "begin_ns": 0,
        "outcome": "ok",
        "keys": list(wrote),
        "values": [5] * len(wrote),
    }
    return hanging_transactions(
        pa.Table.from_pylist(stable, schema=STABLE_OFFSETS),
        transactions=pa.Table.from_pylist([transaction], schema=TRANSACTIONS),
        left_open={"t-0": left_open(logs)} if logs else {},
    )


def test_a_key_that_was_written_to_and_asked_for_is_a_case() -> None:
    assert cases((3, 5, True)) == cases((5, 5, True)) == 1
    assert cases((3, 5, False)) == cases() == 0  # In doubt.
    assert cases((5, 5, True), wrote=()) == 0


def test_a_last_stable_offset_that_stands_still_when_all_is_over_hangs() -> None:
    assert hanging((3, 5, False), (3, 5, True)) == {"t-0": "anomaly"}


def test_a_last_stable_offset_that_caught_up_in_the_end_does_not() -> None:
    assert hanging((3, 5, False), (6, 6, False)) == {"t-0": ""}
    assert hanging((3, 5, False), (6, 6, True)) == {"t-0": ""}


def test_a_transaction_that_may_still_be_aborted_at_its_time_out_is_a_doubt() -> None:
    assert hanging((3, 5, False)) == {"t-0": "doubt"}


def test_a_key_whose_end_was_not_asked_for_is_a_doubt() -> None:
    assert hanging() == {"t-0": "doubt"}
    assert hanging((3, 3, False), wrote=("t-0", "t-1")) == {"t-0": "", "t-1": "doubt"}


def test_records_without_a_marker_on_every_replica_hang_though_all_had_ended_before() -> None:
    logs = [*log("broker-1", "1:v5 1:abort 1:v6"), *log("broker-2", "1:v5 1:abort 1:v6")]
    assert hanging((2, 2, False), logs=logs) == {"t-0": "anomaly"}


def test_the_logs_are_no_anomaly_where_a_marker_follows() -> None:
    logs = [*log("broker-1", "1:v5 1:abort"), *log("broker-2", "1:v5 1:abort")]
    assert hanging((2, 2, False), logs=logs) == {"t-0": ""}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1:v5 1:commit", []),
        ("1:v5 1:abort 1:v6", [(1, 2, 1)]),
        ("1:v5 2:v6 2:commit", [(1, 0, 1)]),
        ("1:v5 1:v6 2:v7 1:abort", [(2, 2, 1)]),
        ("-:v5 1:v6 1:v7 -:v8", [(1, 1, 2)]),
        ("-:v5 -:v6", []),
        ("1:v5 2:v6", [(1, 0, 1), (2, 1, 1)]),
    ],
)
def test_what_is_open_in_one_log(text: str, expected: list[tuple[int, int, int]]) -> None:
    """Producer, first offset and number of records."""
    found = left_open(log("broker-1", text))
    assert [(one.producer_id, one.first_offset, one.record_count) for one in found] == expected


def test_a_replica_that_only_lacks_the_marker_proves_nothing() -> None:
    assert not left_open(log("broker-1", "1:v5 1:v6 1:commit"), log("broker-2", "1:v5 1:v6"))


def test_a_replica_that_lacks_the_record_does_not_say_that_it_has_ended() -> None:
    (found,) = left_open(log("broker-1", "-:v5 1:v6"), log("broker-2", "-:v5"))
    assert (found.first_offset, found.nodes, found.values) == (1, ("broker-1",), (6,))


def test_logs_of_different_keys_are_judged_apart() -> None:
    found = left_open(log("broker-1", "1:v5"), log("broker-1", "1:v6 1:commit", key="t-1"))
    assert [(one.key, one.values) for one in found] == [("t-0", (5,))]
