"""Stored runs with transactions through Spark: whole, torn, hanging, damaged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from histories import history
from manifests import MANIFEST as SMALL
from proving import assert_proof

from fencepost.checkers.check import check_run
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.cluster_schema import REPLICA_RECORDS
from fencepost.history.manifest import write_manifest
from fencepost.history.request_schema import STABLE_OFFSETS, TRANSACTIONS
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import note_digests
from fencepost.history.writer import bucket_file, bucket_of, write_tables

WHOLE = """
    p1 send t-0 v1 -> ok @0
    p1 send t-1 v2 -> ok @0
    p1 send t-0 v3 -> fail
    c1 poll -> t-0 [v1@0]
    r1 final t-0 -> [v1@0]
    r1 final t-1 -> [v2@0]
    """
TORN = WHOLE.replace("[v2@0]", "[]")
ABORTED_READ = WHOLE.replace("[v1@0]", "[v1@0 v3@2]")
COMMITTED: dict[str, Any] = {
    "index": 0,
    "process": 0,
    "transactional_id": "x",
    "intent": "commit",
    "begin_ns": 0,
    "end_call_ns": 16,
    "return_ns": 17,
    "outcome": "ok",
    "keys": ["t-0", "t-1"],
    "values": [1, 2],
}
ABORTED = COMMITTED | {
    "index": 1,
    "intent": "abort",
    "begin_ns": 18,
    "end_call_ns": 26,
    "return_ns": 27,
    "keys": ["t-0"],
    "values": [3],
}
OPEN_RECORD = {
    "key": "t-0",
    "node": "broker-1",
    "offset": 4,
    "leader_epoch": 0,
    "timestamp_ms": 0,
    "control": False,
    "transactional": True,
    "producer_id": 77,
    "producer_epoch": 0,
    "value": 3,
    "digest": 0,
}
MANIFEST = replace(SMALL, keys=("t-0", "t-1"), healed_ns=35, end_ns=100)


def stored(
    root: Path, text: str, *, stable: int = 3, replica_records: list[dict[str, Any]] | None = None
) -> RunDirectory:
    """A run whose key t-0 ends at 3 and was observed to be stable up to there or less."""
    past, run = history(text), RunDirectory(root / "run")
    observed = [
        {
            "time_ns": 50,
            "key": key,
            "last_stable_offset": stable,
            "high_watermark": 3,
            "due": True,
        }
        for key in ("t-0", "t-1")
    ]
    cluster = {
        "transactions": pa.Table.from_pylist([COMMITTED, ABORTED], schema=TRANSACTIONS),
        "stable_offsets": pa.Table.from_pylist(observed, schema=STABLE_OFFSETS),
    }
    if replica_records is not None:
        cluster["replica_records"] = pa.Table.from_pylist(replica_records, schema=REPLICA_RECORDS)
    write_tables(run, operations=past.operations, records=past.records, cluster=cluster)
    write_manifest(run.manifest_path, replace(MANIFEST, recorded=tuple(cluster)))
    note_digests(run)
    return run


def answers(run: RunDirectory, tasks: TaskSession) -> dict[str, CheckResult]:
    return {result.check: result for result in check_run(run, session=tasks).checks}


def test_whole_transactions_that_all_ended_are_valid(tmp_path: Path, tasks: TaskSession) -> None:
    verdict = check_run(stored(tmp_path, WHOLE), session=tasks)
    assert verdict.validity is Validity.VALID
    by_name = {result.check: result for result in verdict.checks}
    assert by_name["torn-transaction"].figures["keys_count"] == 2
    assert by_name["hanging-transaction"].figures["keys_count"] == 2


@pytest.mark.spark
def test_a_torn_transaction_is_found_over_the_files_of_its_keys(
    tmp_path: Path, tasks: TaskSession
) -> None:
    found = answers(stored(tmp_path, TORN), tasks)["torn-transaction"]
    assert found.validity is Validity.INVALID
    (example,) = found.examples
    assert (example.key, example.values) == ("t-1", (1, 2))
    # The sends of both values, and the poll that was given the first.
    assert example.operations == (0, 1, 3)


def test_a_value_of_an_aborted_transaction_that_was_read_is_an_aborted_read(
    tmp_path: Path, tasks: TaskSession
) -> None:
    found = answers(stored(tmp_path, ABORTED_READ), tasks)
    assert found["aborted-read"].validity is Validity.INVALID
    assert found["torn-transaction"].validity is Validity.VALID


def test_a_hanging_transaction_is_found_with_what_the_logs_say(
    tmp_path: Path, tasks: TaskSession
) -> None:
    run = stored(tmp_path, WHOLE, stable=2, replica_records=[OPEN_RECORD])
    found = answers(run, tasks)["hanging-transaction"]
    assert found.validity is Validity.INVALID
    assert {example.key for example in found.examples} == {"t-0", "t-1"}
    (open_,) = [example for example in found.examples if example.key == "t-0"]
    assert_proof(open_, "and no marker after them", producer_id=77)


def test_an_open_record_in_the_logs_stands_alone(tmp_path: Path, tasks: TaskSession) -> None:
    found = answers(stored(tmp_path, WHOLE, replica_records=[OPEN_RECORD]), tasks)
    assert [e.key for e in found["hanging-transaction"].examples] == ["t-0"]


def test_files_that_cannot_be_read_make_unknown(tmp_path: Path, tasks: TaskSession) -> None:
    run = stored(tmp_path, WHOLE, replica_records=[])
    bucket_file(run.history, bucket_of("t-1")).write_bytes(b"torn")
    (run.history / "replica_records" / "bucket-03.parquet").write_bytes(b"torn")
    found = answers(run, tasks)
    for name in ("torn-transaction", "hanging-transaction"):
        assert found[name].validity is Validity.UNKNOWN
        assert "is not what was sealed" in found[name].reason


def test_a_run_without_transactions_is_not_asked_about_them(
    tmp_path: Path, tasks: TaskSession
) -> None:
    run = stored(tmp_path, WHOLE)
    write_manifest(run.manifest_path, MANIFEST)
    assert answers(run, tasks).keys().isdisjoint({"torn-transaction", "hanging-transaction"})
