"""Whose a duplicate is: told by the producer epochs under which the logs have its copies."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from histories import history
from manifests import MANIFEST as SMALL
from proving import assert_proof

from fencepost.checkers.anomaly import anomalies_of
from fencepost.checkers.check import check_run
from fencepost.checkers.data_plane.resent import COPIES, judged_by_logs, of_clients
from fencepost.checkers.finding_rows import FINDINGS, findings_table
from fencepost.checkers.results import anomalies_found
from fencepost.checkers.runner.tasks import InProcessTasks
from fencepost.history.cluster_schema import REPLICA_RECORDS
from fencepost.history.manifest import write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import note_digests
from fencepost.history.writer import write_tables

MANIFEST = replace(SMALL, keys=("t-0",), healed_ns=35, end_ns=100)

Copy = tuple[int, int, int] | tuple[int, int, int, str]
"""Offset, producer id, producer epoch; node, unless it is broker-1."""


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
        "case_count": int(not allowed),
        "seconds": 0.0,
        "anomalies": [one],
    }
    return findings_table([row, {"path": "p", "record_count": 3, "seconds": 0.0}])


def copies(*given: Copy) -> pa.Table:
    """These of value 17 of t-0, and one of a value that is not asked about."""
    of_others: list[Copy] = [(6, 7, 0), (7, 7, 0)]
    rows = [
        {
            "key": "t-0",
            "node": copy[3] if len(copy) > 3 else "broker-1",
            "value": value,
            **dict(zip(("offset", "producer_id", "producer_epoch"), copy[:3], strict=True)),
        }
        for value, of_value in ((17, given), (18, of_others))
        for copy in of_value
    ]
    return pa.Table.from_pylist(rows, schema=COPIES)


def counts(table: pa.Table, check: str = "duplicate") -> tuple[int, int]:
    """Never allowed, and allowed: by the counts of the row, which its anomalies bear out."""
    (row,) = [row for row in table.to_pylist() if row["check"] == check]
    flags = [one["allowed"] for one in row["anomalies"]]
    assert (row["never_count"], row["allowed_count"]) == (flags.count(False), flags.count(True))
    return row["never_count"], row["allowed_count"]


def test_a_copy_in_another_epoch_was_sent_by_the_client() -> None:
    judged = judged_by_logs(
        found(), copies((5, 7, 0), (5, 7, 0, "broker-2"), (9, 7, 1), (9, 7, 1, "broker-2"))
    )
    assert counts(judged) == (0, 1)
    (one,) = anomalies_of(anomalies_found("duplicate", judged))
    epochs = {"producer_epoch": 0, "producer_id": 7, "producer_epoch_2": 1}
    assert_proof(one, "sent again by its client, in producer epochs", **epochs)


def test_a_copy_under_another_producer_id_was_sent_by_the_client() -> None:
    assert counts(judged_by_logs(found(), copies((5, 7, 0), (9, 8, 0)))) == (0, 1)


@pytest.mark.parametrize(
    "given",
    [
        pytest.param([(5, 7, 0), (9, 7, 0)], id="one-epoch"),
        pytest.param([(5, 7, 0)], id="a-copy-that-no-log-has"),
        pytest.param([(5, 7, 0), (9, 7, 1), (9, 7, 2, "broker-2")], id="replicas-that-differ"),
        pytest.param([(5, -1, -1), (9, 7, 0)], id="a-copy-without-idempotence"),
        pytest.param([], id="a-log-without-it"),
    ],
)
def test_any_other_duplicate_stays_one_of_the_brokers(given: list[Copy]) -> None:
    assert counts(judged_by_logs(found(), copies(*given))) == (1, 0)


def test_where_no_log_of_a_key_was_read_its_duplicates_are_a_doubt() -> None:
    """As of a run whose harness was killed: its client may have sent again."""
    judged = judged_by_logs(found(), COPIES.empty_table())
    assert counts(judged) == (0, 1)
    (row,) = [one for one in judged.to_pylist() if one["check"] == "duplicate"]
    assert "none of its logs was read" in row["unknown"]


@pytest.mark.parametrize("nodes", [("broker-1",), ("broker-1", "broker-2"), ("broker-2",)])
def test_no_client_that_gave_up_excuses_a_log_with_two_copies_in_one_epoch(
    nodes: tuple[str, ...],
) -> None:
    twice = [(offset, 7, 0, node) for offset in (5, 9) for node in nodes]
    judged = judged_by_logs(found(allowed=True), copies(*twice))
    assert counts(judged) == (1, 0)
    (one,) = anomalies_of(anomalies_found("duplicate", judged))
    assert_proof(one, "has it twice in", node=nodes[0], producer_epoch=0, producer_id=7)


def test_a_client_that_gave_up_is_excused_where_the_logs_do_not_tell() -> None:
    for given in ([], [(5, 7, 0)], [(5, -1, -1), (9, -1, -1)], [(5, 7, 0), (9, 7, 0, "broker-2")]):
        assert counts(judged_by_logs(found(allowed=True), copies(*given))) == (0, 1)


def test_what_other_checks_found_and_what_was_allowed_stays_as_it_is() -> None:
    told = copies((5, 7, 0), (9, 7, 1))
    assert counts(judged_by_logs(found(check="vanished"), told), "vanished") == (1, 0)
    assert counts(judged_by_logs(found(allowed=True), told)) == (0, 1)
    assert judged_by_logs(found(), told).schema == FINDINGS


AGAIN = copies((5, 7, 0), (9, 7, 1))


def client_duplicates(judged: pa.Table, *, bound: int = 0) -> tuple[int, int, bool]:
    """Those never allowed, the cases, and whether there is a doubt."""
    (row,) = of_clients(judged, bound=bound).to_pylist()
    assert len(row["anomalies"]) == row["never_count"]
    return row["never_count"], row["case_count"], row["unknown"] is not None


def test_a_scenario_may_promise_that_its_clients_send_nothing_again() -> None:
    judged = judged_by_logs(found(), AGAIN)
    assert counts(judged) == (0, 1)
    assert client_duplicates(judged) == (1, 1, False)
    (one,) = anomalies_of(anomalies_found("client-duplicate", of_clients(judged, bound=0)))
    assert_proof(one, "sent again by its client, in producer epochs", producer_epoch_2=1)


def test_no_more_than_the_bound_is_in_order() -> None:
    assert client_duplicates(judged_by_logs(found(), AGAIN), bound=1) == (0, 1, False)


def test_what_the_brokers_wrote_twice_is_not_the_clients() -> None:
    judged = judged_by_logs(found(), copies((5, 7, 0), (9, 7, 0)))
    assert client_duplicates(judged) == (0, 1, False)
    assert client_duplicates(judged_by_logs(found(), copies())) == (0, 1, False)


def test_a_duplicate_that_no_log_tells_of_may_be_a_clients() -> None:
    assert client_duplicates(judged_by_logs(found(allowed=True), copies())) == (0, 0, True)
    assert client_duplicates(found(allowed=True)) == (0, 0, True)
    assert client_duplicates(found()) == (0, 1, False)


def log_rows(*given: tuple[str, int, int, int]) -> pa.Table:
    """The logs of t-0: node, offset, value, producer epoch."""
    return pa.Table.from_pylist(
        [
            {
                "key": "t-0",
                "node": node,
                "offset": offset,
                "leader_epoch": 0,
                "timestamp_ms": 0,
                "control": False,
                "transactional": False,
                "producer_id": 7,
                "producer_epoch": producer_epoch,
                "value": value,
                "digest": value,
            }
            for node, offset, value, producer_epoch in given
        ],
        schema=REPLICA_RECORDS,
    )


@pytest.mark.parametrize(
    ("epoch_of_copy", "validity", "of_client"),
    [(0, "invalid", "valid"), (1, "valid", "invalid")],
)
def test_a_duplicate_in_one_epoch_is_the_brokers_whatever_its_client_gave_up_on(
    tmp_path: Path, epoch_of_copy: int, validity: str, of_client: str
) -> None:
    past = history(
        """
        p1 send t-0 v1 -> ok @0   in 0..30
        p1 send t-0 v2 -> info    in 1..19
        c1 poll -> t-0 [v1@0 v1@1]
        r1 final t-0 -> [v1@0 v1@1]
        """
    )
    run = RunDirectory(tmp_path / "run")
    logs = log_rows(("broker-1", 0, 1, 0), ("broker-1", 1, 1, epoch_of_copy))
    cluster = {"replica_records": logs}
    write_tables(run, operations=past.operations, records=past.records, cluster=cluster)
    manifest = replace(
        MANIFEST, recorded=tuple(cluster), required_bounds={"client_duplicates_max_count": 0}
    )
    write_manifest(run.manifest_path, manifest)
    note_digests(run)
    verdict = check_run(run, session=InProcessTasks())
    results = {one.check: one for one in verdict.checks}
    duplicate = results["duplicate"]
    assert duplicate.validity == validity
    assert (duplicate.anomaly_count, duplicate.allowed_count) == (1, epoch_of_copy)
    assert results["client-duplicate"].validity == of_client
