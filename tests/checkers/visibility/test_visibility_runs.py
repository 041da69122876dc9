"""Stored runs with reads and writes of metadata through Spark: figures, proofs, what is unknown."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from manifests import MANIFEST as SMALL
from metadata_histories import tables
from proving import assert_proof

from fencepost.checkers.anomaly import anomalies_of
from fencepost.checkers.case_counts import with_case_count
from fencepost.checkers.catalogue import asked
from fencepost.checkers.check_group import Question
from fencepost.checkers.runner.tasks import TaskSession
from fencepost.checkers.setting import Setting
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.checkers.visibility.group import CHECKS
from fencepost.history.cluster_schema import METADATA_OFFSETS
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import FAULTS, OPERATIONS, RECORDS
from fencepost.history.writer import write_tables

MS = 1_000_000
(VISIBILITY,) = CHECKS
RECORDED = ("describes", "metadata_writes")
STALE = """
    create A 0 10-20
    alter  1   30-40
    reads b1 =1 50-51
    reads b2 =0 60-61
    reads b3 A  60-61
    reads b2 =0 80-81
    reads b2 =1 90-91
"""
MANIFEST = replace(SMALL, recorded=RECORDED)
Judge = Callable[..., tuple[dict[str, CheckResult], pa.Table]]


@pytest.fixture
def judge(tasks: TaskSession, tmp_path: Path) -> Judge:
    def judged(
        text: str,
        *,
        offsets: tuple[tuple[int, str, int], ...] = (),
        damaged: bool = False,
        recorded: tuple[str, ...] = RECORDED,
        age_max_ms: float | None = None,
        settled_age_max_ms: float | None = None,
        faults: tuple[tuple[int, int | None], ...] = (),
    ) -> tuple[dict[str, CheckResult], pa.Table]:
        run = RunDirectory(tmp_path / f"run-{len(list(tmp_path.iterdir()))}")
        promises = replace(
            MANIFEST.promises,
            metadata_age_max_ms=age_max_ms,
            metadata_settled_age_max_ms=settled_age_max_ms,
            metadata_settle_ms=20 / MS,
        )
        broken = [
            {"index": index, "fault": "pause", "targets": [], "begin_ns": begin, "end_ns": end}
            for index, (begin, end) in enumerate(faults)
        ]
        told = [
            {"time_ns": time_ns, "node": node, "metadata_offset": offset, "source": "heartbeat"}
            for time_ns, node, offset in offsets
        ]
        write_tables(
            run,
            operations=OPERATIONS.empty_table(),
            records=RECORDS.empty_table(),
            faults=pa.Table.from_pylist(broken, schema=FAULTS),
            cluster={
                **tables(text),
                "metadata_offsets": pa.Table.from_pylist(told, schema=METADATA_OFFSETS),
            },
        )
        if damaged:
            (run.history / "describes.parquet").write_bytes(b"PAR1")
        if "partition_writes" not in recorded:
            # As in a run that is older than this table.
            (run.history / "partition_writes.parquet").unlink()
        question = Question(
            run=run,
            manifest=replace(MANIFEST, promises=promises, recorded=recorded),
            checks=tuple(entry.name for entry in VISIBILITY.entries),
            setting=Setting(idempotent=True, consume="assign"),
            session=tasks,
            budget_s=60,
        )
        answers = VISIBILITY.answer(question)
        return {result.check: result for result in answers.results}, answers.anomalies

    return judged


@pytest.mark.spark
def test_stale_reads_are_counted_and_their_ages_told_by_broker(judge: Judge) -> None:
    results, anomalies = judge(STALE, offsets=((15, "broker-2", 7), (35, "broker-1", 9)))
    stale = results["stale-read-after-write"]
    assert (stale.validity, stale.anomaly_count, stale.allowed_count) == (Validity.VALID, 2, 2)
    assert stale.figures["judged_count"] == stale.case_count == 5
    assert stale.figures["stale_count"] == stale.figures["broker_2_stale_count"] == 2
    assert stale.figures["age_max_ms"] == stale.figures["broker_2_age_max_ms"] == 40 / MS
    assert stale.figures["age_p50_ms"] == 40 / MS  # of two, the upper one
    assert "broker_1_stale_count" not in stale.figures
    worst = stale.examples[0]
    assert (worst.key, worst.allowed) == ("m-000001", True)
    assert_proof(
        worst,
        "it lacks the change of settings to",
        read=3,
        node="broker-2",
        process=2,
        lacks_setting=1,
        write=1,
        lacks_node="broker-1",
        applied=7,
        highest=9,
    )
    assert results["nonrepeatable-read"].anomaly_count == 2
    assert results["session-went-back"].anomaly_count == 0
    assert results["session-went-back"].validity is Validity.VALID
    assert (
        anomalies["check"].to_pylist()
        == ["stale-read-after-write"] * 2 + ["nonrepeatable-read"] * 2
    )


def test_without_anything_to_compare_there_is_no_case(judge: Judge) -> None:
    results, _ = judge("create A 0 10-20")
    for result in results.values():
        assert not result.case_count
        assert with_case_count(result, MANIFEST.promises).validity is Validity.FIGURE
        bounded = replace(MANIFEST.promises, metadata_age_max_ms=1000)
        assert with_case_count(result, bounded).validity is Validity.NOT_JUDGED


def test_a_damaged_table_is_unknown_by_name(judge: Judge) -> None:
    results, anomalies = judge(STALE, damaged=True)
    assert len(anomalies) == 0
    for result in results.values():
        assert result.validity is Validity.UNKNOWN
        assert "describes.parquet" in result.reason


def test_partitions_that_were_given_and_are_not_shown_are_counted(judge: Judge) -> None:
    history = """
        create A 0 10-20
        grow   2   30-40
        reads b1 A*2 50-51
        reads b2 A   60-61
    """
    results, anomalies = judge(history, recorded=(*RECORDED, "partition_writes"))
    for check in ("stale-read-after-write", "nonrepeatable-read"):
        assert (results[check].validity, results[check].anomaly_count) == (Validity.VALID, 1)
    stale, back = (one.proof for one in anomalies_of(anomalies))
    grown = {"lacks_partition_count": 2, "lacks_node": "broker-1"}
    assert_proof(stale, "it lacks the growth to", partition_count=1, write=1, **grown)
    assert_proof(back, "as read", partition_count=1, lacks_partition_count=2)


def test_nothing_is_too_old_where_a_write_is_missing(judge: Judge) -> None:
    """Without the deletion, the reads that show no topic would lack its creation."""
    history = "create A 0 10-20\ndelete 30-40\nreads b1 none 50-51\ncreate B 2 60-70\nalter 3 80-90"
    whole = {"recorded": (*RECORDED, "partition_writes"), "age_max_ms": 0.0}
    results, _ = judge(history, **whole)
    assert {one.validity for one in results.values()} == {Validity.VALID}
    results, anomalies = judge(history.replace("delete 30-40\n", ""), **whole)
    assert {one.validity for one in results.values()} == {Validity.UNKNOWN}
    assert not len(anomalies)
    said = results["stale-read-after-write"].reason
    assert said.endswith(
        "the write of 2 to m-000001 carries the count of those before it, and 1 are recorded"
    )


def test_they_are_asked_where_their_tables_are_recorded() -> None:
    assert [entry.id for entry in asked(RECORDED) if entry.id.startswith("V")] == ["V1", "V2", "V3"]
    assert [entry.id for entry in asked(["describes"]) if entry.id.startswith("V")] == ["V2", "V3"]


def test_a_run_that_promises_an_age_is_broken_by_an_older_read(judge: Judge) -> None:
    results, anomalies = judge(STALE, age_max_ms=0.0)
    result = results["stale-read-after-write"]
    assert result.validity is Validity.INVALID
    assert result.allowed_count == 0
    mine = anomalies.filter(pc.equal(anomalies["check"], "stale-read-after-write"))
    assert mine["allowed"].to_pylist() == [False, False]
    results, _ = judge(STALE, age_max_ms=1e9)
    assert results["stale-read-after-write"].validity is Validity.VALID


def test_a_promise_of_settled_reads_is_broken_by_an_older_one_when_nothing_is_broken(
    judge: Judge,
) -> None:
    """Reads are at 50, 60, 60, 80 and 90, those at 60 and 80 too old; a run settles in 20."""
    results, anomalies = judge(STALE, settled_age_max_ms=0.0, faults=((35, 55),))
    result = results["stale-read-after-write"]
    assert result.validity is Validity.INVALID
    assert (result.anomaly_count, result.allowed_count, result.case_count) == (2, 1, 2)
    assert result.figures["judged_count"] == 5
    assert result.figures["settled_stale_count"] == 1
    mine = anomalies.filter(pc.equal(anomalies["check"], "stale-read-after-write"))
    assert mine["allowed"].to_pylist() == [False, True]
    (too_old, _) = (one.proof for one in anomalies_of(mine))
    assert_proof(too_old, "showed setting", setting=0, lacks_setting=1, called=80 / 1e6)


@pytest.mark.parametrize("faults", [((35, 61),), ((35, None),), ((35, 55), (75, 78))])
def test_a_read_is_held_to_no_age_while_something_is_broken_or_was_just_now(
    judge: Judge, faults: tuple[tuple[int, int | None], ...]
) -> None:
    results, _ = judge(STALE, settled_age_max_ms=0.0, faults=faults)
    result = results["stale-read-after-write"]
    assert (result.validity, result.anomaly_count, result.allowed_count) == (Validity.VALID, 2, 2)
    assert result.case_count == (1 if faults == ((35, 61),) else 0)


def test_a_settled_read_may_be_as_old_as_promised(judge: Judge) -> None:
    results, _ = judge(STALE, settled_age_max_ms=1.0)
    assert results["stale-read-after-write"].validity is Validity.VALID
    assert results["stale-read-after-write"].case_count == 5
