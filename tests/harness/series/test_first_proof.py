"""When the operations of the first proof had ended."""

from pathlib import Path

import pyarrow as pa

from checkers.anomaly import Anomaly
from checkers.proof import Proof
from checkers.verdict import CheckResult, Validity, Verdict
from harness.series.reproduce import first_proof_seconds
from history.cluster_schema import WIRE
from history.run_directory import RunDirectory
from history.schema import OPERATIONS, RECORDS
from history.writer import write_tables

ENDS_S: tuple[float | None, ...] = (1.0, 9.0, 2.0, 4.0, None)


def stored_run(root: Path) -> RunDirectory:
    run = RunDirectory(root / "run")
    rows = [
        {
            "index": index,
            "process": 0,
            "f": "send",
            "key": "t-0",
            "call_ns": index,
            "return_ns": None if end is None else round(end * 1e9),
            "outcome": "ok" if end is not None else "info",
            "error": None,
            "record_count": 1,
        }
        for index, end in enumerate(ENDS_S)
    ]
    operations = pa.Table.from_pylist(rows, schema=OPERATIONS)
    wire = pa.Table.from_pylist(
        [frame(7, at=3.0, until=5.0), frame(8, at=6.0, until=None)], schema=WIRE
    )
    write_tables(run, operations=operations, records=RECORDS.empty_table(), cluster={"wire": wire})
    return run


def frame(number: int, *, at: float, until: float | None) -> dict[str, object]:
    return {
        "frame": number,
        "item": 0,
        "connection": 0,
        "source": "broker-1",
        "target": "controller-1",
        "direction": "request",
        "time_ns": round(at * 1e9),
        "forwarded_ns": None if until is None else round(until * 1e9),
        "action": "forwarded",
        "api": "AlterPartition",
        "api_key": 56,
        "api_version": 3,
        "correlation_id": number,
        "size_bytes": 9,
    }


def verdict(
    *proofs: tuple[int, ...], allowed: bool = False, frames: tuple[int, ...] = ()
) -> Verdict:
    examples = tuple(
        Anomaly(
            check="lost-write",
            key="t-0",
            allowed=allowed,
            proof=Proof.as_told("", operations=operations, frames=frames),
        )
        for operations in proofs
    )
    return Verdict.of(
        [CheckResult(check="lost-write", validity=Validity.INVALID, examples=examples)]
    )


def test_a_proof_is_complete_when_its_last_operation_had_ended(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    found = verdict((0, 1), (2, 3))
    assert first_proof_seconds(run, found, {"lost-write"}) == 4.0


def test_an_operation_that_never_ended_completes_no_proof(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    assert first_proof_seconds(run, verdict((0, 4)), {"lost-write"}) is None
    assert first_proof_seconds(run, verdict((0, 4), (0, 1)), {"lost-write"}) == 9.0


def test_without_a_proof_of_what_is_sought_there_is_no_such_time(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    assert first_proof_seconds(run, verdict((0, 1)), {"unseen"}) is None
    assert first_proof_seconds(run, verdict(()), {"lost-write"}) is None
    assert first_proof_seconds(run, verdict((0, 1), allowed=True), {"lost-write"}) is None


def test_a_proof_by_frames_is_complete_when_the_last_of_them_had_passed(tmp_path: Path) -> None:
    run = stored_run(tmp_path)
    assert first_proof_seconds(run, verdict((), frames=(7,)), {"lost-write"}) == 5.0
    assert first_proof_seconds(run, verdict((0,), frames=(7, 8)), {"lost-write"}) == 6.0
    assert first_proof_seconds(run, verdict((0,), frames=(99,)), {"lost-write"}) is None
