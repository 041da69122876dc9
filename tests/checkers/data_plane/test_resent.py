"""Whose a duplicate is: told by the producer epochs under which the logs have its copies."""

from typing import Any

import pyarrow as pa
import pytest
from proving import assert_proof

from checkers.anomaly import anomalies_of
from checkers.data_plane.resent import COPIES, client_made
from checkers.finding_rows import FINDINGS, findings_table
from checkers.results import anomalies_found

Copy = tuple[int, int, int]
"""Offset, producer id, producer epoch."""


def found(*, check: str = "duplicate", allowed: bool = False) -> pa.Table:
    """Value 17 of t-0 stands at 5 and at 9."""
    one = {
        "allowed": allowed,
        "operations": [1, 2],
        "offsets": [5, 9],
        "values": [17],
        "frames": [],
        "detail": "value 17 stands at 2 offsets: 5, 9",
    }
    row: dict[str, Any] = {
        "path": "p",
        "check": check,
        "key": "t-0",
        "never_count": int(not allowed),
        "allowed_count": int(allowed),
        "seconds": 0.0,
        "anomalies": [one],
    }
    return findings_table([row, {"path": "p", "record_count": 3, "seconds": 0.0}])


def copies(*given: Copy) -> pa.Table:
    """These of value 17 of t-0, and one of a value that is not asked about."""
    rows = [("t-0", 17, *copy) for copy in given] + [("t-0", 18, 6, 7, 0)]
    return pa.Table.from_pylist(
        [dict(zip(COPIES.names, row, strict=True)) for row in rows], schema=COPIES
    )


def counts(table: pa.Table, check: str = "duplicate") -> tuple[int, int]:
    """Never allowed, and allowed: by the counts of the row, which its anomalies bear out."""
    (row,) = [row for row in table.to_pylist() if row["check"] == check]
    flags = [one["allowed"] for one in row["anomalies"]]
    assert (row["never_count"], row["allowed_count"]) == (flags.count(False), flags.count(True))
    return row["never_count"], row["allowed_count"]


def test_a_copy_in_another_epoch_was_sent_by_the_client() -> None:
    judged = client_made(found(), copies((5, 7, 0), (5, 7, 0), (9, 7, 1), (9, 7, 1)))
    assert counts(judged) == (0, 1)
    (one,) = anomalies_of(anomalies_found("duplicate", judged))
    epochs = {"producer_epoch": 0, "producer_id": 7, "producer_epoch_2": 1}
    assert_proof(one, "sent again by its client, in producer epochs", **epochs)


def test_a_copy_under_another_producer_id_was_sent_by_the_client() -> None:
    assert counts(client_made(found(), copies((5, 7, 0), (9, 8, 0)))) == (0, 1)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([(5, 7, 0), (9, 7, 0)], id="one-epoch"),
        pytest.param([(5, 7, 0)], id="a-copy-that-no-log-has"),
        pytest.param([(5, 7, 0), (9, 7, 1), (9, 7, 0)], id="replicas-that-differ"),
        pytest.param([(5, -1, -1), (9, 7, 0)], id="a-copy-without-idempotence"),
        pytest.param([], id="no-log"),
    ],
)
def test_any_other_duplicate_stays_one_of_the_brokers(given: list[Copy]) -> None:
    assert counts(client_made(found(), copies(*given))) == (1, 0)


def test_what_other_checks_found_and_what_was_allowed_stays_as_it_is() -> None:
    told = copies((5, 7, 0), (9, 7, 1))
    assert counts(client_made(found(check="vanished"), told), "vanished") == (1, 0)
    assert client_made(found(allowed=True), told).sort_by("check") == found(allowed=True).sort_by(
        "check"
    )
    assert client_made(found(), told).schema == FINDINGS
