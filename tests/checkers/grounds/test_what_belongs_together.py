"""What belongs together is there: keys, sends, replicas, columns, order; else nothing counts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from histories import history
from judging import summary
from manifests import MANIFEST as SMALL

from fencepost.checkers.grounds.file_survey import FileSurvey, survey_of
from fencepost.checkers.grounds.whole_run import whole_run, whole_run_of
from fencepost.checkers.runner.tables import SealedFile
from fencepost.checkers.runner.tasks import InProcessTasks
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Manifest, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.schema import RECORD_BUCKET_COUNT, TABLES
from fencepost.history.seal import note_digests
from fencepost.history.writer import write_tables

PAST = """
    p1 send t-0 v1 -> ok @0
    p1 send t-0 v2 -> info
    c1 poll -> t-0 [v1@0]
    r1 final t-0 -> [v1@0]
    """
MANIFEST = replace(
    SMALL,
    keys=("t-0",),
    node_ids={"broker-1": 1},
    recorded=("replicas", "replica_records", "describes"),
    healed_ns=35,
    end_ns=100,
)
ON_DISK = {("t-0", "broker-1"): 1}
WHOLE = (
    FileSurvey(table="replicas", row_count=1, records=ON_DISK),
    FileSurvey(table="replica_records", row_count=1, records=ON_DISK),
    FileSurvey(table="describes", row_count=3),
)


def wrong(
    text: str = PAST,
    *,
    manifest: Manifest = MANIFEST,
    surveys: tuple[FileSurvey, ...] = WHOLE,
    without_records: int | None = None,
) -> tuple[str, frozenset[str]]:
    """The reason, and the tables in which nothing that was found counts."""
    operations = history(text).operations
    if without_records is not None:
        rows = operations.to_pylist()
        rows[without_records]["record_count"] = 0
        operations = pa.Table.from_pylist(rows, schema=operations.schema)
    found = whole_run(manifest, summary(operations), surveys)
    assert (found.result.validity is Validity.VALID) == (not found.result.reason)
    return found.result.reason, found.tables


def of(table: str, **changes: Any) -> tuple[FileSurvey, ...]:
    return tuple(replace(one, **changes) if one.table == table else one for one in WHOLE)


def test_a_run_whose_parts_fit_is_whole_with_a_crashed_send_too() -> None:
    assert wrong() == ("", frozenset())


def test_a_key_that_nobody_sent_to_has_no_records_on_any_disk() -> None:
    reason, tables = wrong("r1 final t-0 -> []")
    assert "replicas hold 1 records of t-0, and no client sent any" in reason
    assert tables == {"operations", "records"}
    empty = {("t-0", "broker-1"): 0}
    unused = (replace(WHOLE[0], records=empty), replace(WHOLE[1], records={}), WHOLE[2])
    assert wrong("r1 final t-0 -> []", surveys=unused) == ("", frozenset())


@pytest.mark.parametrize("send", [0, 1])
def test_a_send_has_a_record_whatever_became_of_it(send: int) -> None:
    reason, tables = wrong(without_records=send)
    assert (reason, tables) == (
        f"operation {send} is a send without a record",
        {"operations", "records"},
    )
    # A poll may have none.
    assert wrong(without_records=2) == ("", frozenset())


def test_the_keys_of_the_run_are_those_that_clients_used() -> None:
    assert "t-0, which is no key of the run" in wrong(manifest=replace(MANIFEST, keys=("t-1",)))[0]
    more = replace(MANIFEST, keys=("t-0", "t-1"))
    assert "t-1 is a key of the run without a final read" in wrong(manifest=more)[0]


def test_a_key_that_clients_sent_to_has_replicas() -> None:
    reason, tables = wrong(surveys=WHOLE[2:])
    assert ("no replica of it is told of" in reason, tables) == (True, {"replicas"})


@pytest.mark.parametrize("there", [{}, {("t-0", "broker-1"): 2}, {("t-0", "broker-2"): 1}])
def test_the_records_of_a_replica_are_as_many_as_were_counted(
    there: dict[tuple[str, str], int],
) -> None:
    reason, tables = wrong(surveys=of("replica_records", records=there))
    assert "was counted to have" in reason
    assert tables == {"replicas", "replica_records"}


def test_what_the_final_read_returned_lies_on_a_disk() -> None:
    none = {("t-0", "broker-1"): 0}
    short = (replace(WHOLE[0], records=none), replace(WHOLE[1], records=none), WHOLE[2])
    said, tables = wrong(surveys=short)
    assert "the final read of t-0 returned 1 records, and no replica holds more than 0" in said
    assert tables == {"replicas", "replica_records"}
    beside = {("t-0", "broker-1"): 0, ("t-0", "broker-2"): 1}
    assert not wrong(
        surveys=(replace(WHOLE[0], records=beside), replace(WHOLE[1], records=beside), WHOLE[2])
    )[0]


def test_a_table_is_empty_only_if_it_was_not_to_be_recorded() -> None:
    assert wrong(surveys=of("describes", row_count=0))[0].endswith("(describes) is empty")
    running = replace(MANIFEST, end_ns=None)
    assert not wrong(manifest=running, surveys=of("describes", row_count=0))[0]
    unasked = replace(MANIFEST, recorded=("replicas", "replica_records"))
    assert "describes has 3 rows, and the run did not set out" in wrong(manifest=unasked)[0]
    other = replace(MANIFEST, recorded=(*MANIFEST.recorded, "nonsense"))
    assert "names a table nonsense" in wrong(manifest=other)[0]


def test_transactions_that_contradict_their_sends_prove_nothing() -> None:
    twins = (*WHOLE, FileSurvey(table="records", row_count=4, contradiction="transaction 0 is not"))
    assert wrong(surveys=twins) == ("transaction 0 is not", {"records", "transactions"})


def test_what_a_cluster_proves_that_never_came_up_counts() -> None:
    short = replace(MANIFEST, shortfalls=("the cluster did not begin",), keys=())
    none = tuple(replace(one, row_count=0, records={}) for one in WHOLE)
    found = whole_run(short, None, none)
    assert found.result.validity is Validity.VALID
    assert not found.tables
    assert whole_run(replace(short, shortfalls=()), None, none).result.reason


def test_a_table_whose_columns_all_say_nothing_is_no_evidence() -> None:
    assert wrong(surveys=of("describes", blank=("isr",)))[1] == {"describes"}


def read(number: int, **changes: Any) -> dict[str, Any]:
    row = {"read": number, "process": 1, "node": "broker-1", "topic": "t", "error": "NONE"}
    return row | {"call_ns": 10, "return_ns": 20, "partition": 0, "leader": 1} | changes


def change(node: str, offset: int) -> dict[str, Any]:
    row = {"node": node, "snapshot": False, "metadata_offset": offset, "controller_epoch": 0}
    told = {"timestamp_ms": 0, "type": "x", "type_key": 0, "version": 0}
    return row | told | {"control": False, "digest": 0}


def surveyed(directory: Path, table: str, *rows: dict[str, Any], digest: str = "") -> FileSurvey:
    path = directory / "history" / f"{table}.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(list(rows), schema=TABLES[table]), path)
    return survey_of(SealedFile(path=str(path), digest=digest))


@pytest.mark.parametrize(
    ("rows", "disorder"),
    [
        ([read(0), read(0), read(1)], ""),
        ([read(1)], "read 1 comes behind -1"),
        ([read(0), read(2)], "read 2 comes behind 0"),
        ([read(0), read(1), read(0)], "read 0 comes behind 1"),
        ([read(0), read(1, return_ns=9)], "read 1 ends before it began"),
    ],
)
def test_reads_are_numbered_and_end_after_they_began(
    tmp_path: Path, rows: list[dict[str, Any]], disorder: str
) -> None:
    found = surveyed(tmp_path, "describes", *rows)
    assert (found.row_count, found.disorder) == (len(rows), disorder)
    assert found.blank == ("isr",)


@pytest.mark.parametrize(
    ("places", "disorder"),
    [
        ([("a", 0), ("a", 0), ("a", 1), ("b", 1)], ""),
        ([("a", 1), ("a", 0)], "on a, offset 0 comes behind 1"),
        ([("a", 0), ("b", 0), ("a", 1)], "rows of a stand in several places"),
    ],
)
def test_a_metadata_log_is_in_the_order_of_node_and_offset(
    tmp_path: Path, places: list[tuple[str, int]], disorder: str
) -> None:
    found = surveyed(tmp_path, "metadata_log", *(change(*place) for place in places))
    assert found.disorder == disorder
    manifest = replace(MANIFEST, node_ids={}, recorded=(*MANIFEST.recorded, "metadata_log"))
    tables = wrong(manifest=manifest, surveys=(*WHOLE, found))[1]
    assert tables == ({"metadata_log"} if disorder else frozenset())


def test_a_sealed_file_is_there_and_is_what_was_sealed(tmp_path: Path) -> None:
    with pytest.raises(HarnessError, match="not what was sealed"):
        surveyed(tmp_path, "describes", read(0), digest="0")
    with pytest.raises(HarnessError, match="cannot read"):
        survey_of(SealedFile(path=str(tmp_path / "history" / "faults.parquet"), digest="0"))


def test_operations_end_after_they_began_in_the_order_of_their_calls() -> None:
    assert "operation 1 ends before" in wrong(PAST.replace("v2 -> info", "v2 -> info in 12..8"))[0]


def on_disk(offset: int, value: int | None, *, control: bool = False) -> dict[str, Any]:
    row = {"key": "t-0", "node": "broker-1", "offset": offset, "leader_epoch": 0, "timestamp_ms": 0}
    told = {"control": control, "transactional": False, "producer_id": -1, "producer_epoch": -1}
    return row | told | {"value": value, "digest": 0}


def in_bucket(directory: Path, table: str, rows: pa.Table) -> SealedFile:
    path = directory / "history" / table / "bucket-00.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, path)
    return SealedFile(path=str(path), digest="")


@pytest.mark.parametrize(
    ("rows", "strange"),
    [
        ([on_disk(0, 1), on_disk(1, 2), on_disk(2, None, control=True)], ""),
        ([on_disk(0, 1), on_disk(1, 3)], "on broker-1 has value 3 at offset 1, and no client sent"),
        ([on_disk(0, 1), on_disk(1, None)], "has no value of ours at offset 1"),
    ],
)
def test_a_record_on_a_disk_was_sent_or_is_a_marker(
    tmp_path: Path, rows: list[dict[str, Any]], strange: str
) -> None:
    in_bucket(tmp_path, "records", history(PAST).records)
    schema = TABLES["replica_records"]
    found = survey_of(
        in_bucket(tmp_path, "replica_records", pa.Table.from_pylist(rows, schema=schema))
    )
    assert (strange in found.strange, bool(found.strange)) == (True, bool(strange))
    # Answers to clients about other records still count.
    reason, tables = wrong(surveys=of("replica_records", strange=found.strange))
    assert (reason, tables) == (found.strange, frozenset())


def test_the_records_of_each_kind_of_operation_are_as_many_as_were_told_of(tmp_path: Path) -> None:
    found = survey_of(in_bucket(tmp_path, "records", history(PAST).records))
    assert found.rows_by_f == {"send": 2, "poll": 1, "final-read": 1}
    others = tuple(FileSurvey(table="records", row_count=0) for _ in range(RECORD_BUCKET_COUNT - 1))
    assert not wrong(surveys=(*WHOLE, found, *others))[0]
    moved = replace(found, rows_by_f={"send": 1, "poll": 2, "final-read": 1})
    reason, tables = wrong(surveys=(*WHOLE, moved, *others))
    assert "operations tell of 2 records of send, and 1 are there" in reason
    assert tables == {"operations", "records"}
    # A file that cannot be read is told of elsewhere; what was found in the others stands.
    assert not wrong(surveys=(*WHOLE, moved))[0]


def test_a_run_without_digests_shows_nothing(tmp_path: Path) -> None:
    run, past = RunDirectory(tmp_path), history(PAST)
    write_tables(run, operations=past.operations, records=past.records)
    manifest = replace(MANIFEST, recorded=())
    write_manifest(run.manifest_path, manifest)

    def answer() -> CheckResult:
        sealed, sums = read_manifest(run.manifest_path), summary(past.operations)
        found = whole_run_of(run, sealed, sums, session=InProcessTasks(), budget_s=60)
        assert not found.tables
        return found.result

    assert "operations has no digest: nothing shows that it is" in answer().reason
    note_digests(run)
    assert (answer().validity, answer().reason) == (Validity.VALID, "")


def test_clients_do_nothing_outside_the_run(tmp_path: Path) -> None:
    assert surveyed(tmp_path, "describes", read(0), read(1, return_ns=101)).span_ns == (10, 101)
    late = (*WHOLE, FileSurvey(table="records", row_count=4, span_ns=(10, 101)))
    reason, tables = wrong(surveys=late)
    assert "from 10 to 101 ns, and the run ended at 100 ns" in reason
    assert tables == {"records"}
    assert not wrong(surveys=late, manifest=replace(MANIFEST, end_ns=101))[0]
    assert not wrong(surveys=late, manifest=replace(MANIFEST, end_ns=None))[0]
    early = (*WHOLE, FileSurvey(table="records", row_count=4, span_ns=(-1, 9)))
    assert wrong(surveys=early)[1] == {"records"}
    # A history that another tool recorded has a zero of its own.
    elsewhere = (FileSurvey(table="model_operations", row_count=4, span_ns=(-1, 9)),)
    assert not whole_run(replace(MANIFEST, recorded=(), keys=()), None, elsewhere).result.reason
    of_ours = replace(MANIFEST, recorded=(), keys=(), cluster="processes")
    assert whole_run(of_ours, None, elsewhere).result.reason
    # The observer goes on until it is stopped.
    assert not wrong(surveys=of("describes", span_ns=(0, 101)))[0]


@pytest.mark.parametrize(
    ("read_to_have", "there", "fits"),
    [
        pytest.param((0, 1), (0, 1), True, id="they fit"),
        pytest.param((0, 2), (0, 1), False, id="the end is not there"),
        pytest.param((1, 2), (0, 2), False, id="records before the start"),
        pytest.param((3, 4), (3, 4), False, id="records were removed"),
    ],
)
def test_a_log_goes_from_its_start_to_its_end(
    read_to_have: tuple[int, int], there: tuple[int, int], *, fits: bool
) -> None:
    place = ("t-0", "broker-1")
    surveys = (
        replace(WHOLE[0], bounds={place: read_to_have}),
        replace(WHOLE[1], bounds={place: there}),
        WHOLE[2],
    )
    reason, tables = wrong(surveys=surveys)
    assert ("none is to be removed" not in reason) == fits
    assert tables == (frozenset() if fits else {"replicas", "replica_records"})


def test_the_bounds_of_a_log_are_those_of_its_records_but_for_damaged_logs(tmp_path: Path) -> None:
    rows = pa.Table.from_pylist(
        [on_disk(offset, 17) for offset in (4, 5, 7)], schema=TABLES["replica_records"]
    )
    found = survey_of(in_bucket(tmp_path, "replica_records", rows))
    assert found.bounds == {("t-0", "broker-1"): (4, 8)}
    row = {"node": "broker-1", "key": "t-0", "log_start_offset": 4, "log_end_offset": 8}
    read_ = row | {"leader_epochs": [], "record_count": 3}
    assert surveyed(tmp_path, "replicas", read_).bounds == found.bounds
    assert not surveyed(tmp_path, "replicas", read_ | {"damage": "torn"}).bounds
    assert not surveyed(tmp_path, "replicas", read_ | {"record_count": 0}).bounds


def fault(index: int, **changes: Any) -> dict[str, Any]:
    row = {"index": index, "fault": "kill", "targets": ["broker-1"], "begin_ns": 10, "end_ns": 20}
    return row | changes


@pytest.mark.parametrize(
    ("rows", "disorder"),
    [
        ([fault(0), fault(1, end_ns=None)], ""),
        ([fault(0), fault(2)], "index 2 comes behind 0"),
        ([fault(0, end_ns=9)], "index 0 ends before it began"),
    ],
)
def test_faults_are_numbered_and_end_after_they_began(
    tmp_path: Path, rows: list[dict[str, Any]], disorder: str
) -> None:
    assert surveyed(tmp_path, "faults", *rows).disorder == disorder


def test_copies_with_one_digest_have_one_content_where_it_is_the_records_own() -> None:
    log = FileSurvey(table="metadata_log", row_count=2, copies="nodes have other contents")
    kraft = replace(MANIFEST, recorded=(*MANIFEST.recorded, "metadata_log"))
    assert wrong(manifest=kraft, surveys=(*WHOLE, log))[1] == {"metadata_log"}
    ensemble = replace(kraft, node_ids={"broker-1": 1, "zookeeper-1": 2001})
    assert not wrong(manifest=ensemble, surveys=(*WHOLE, log))[0]


def test_records_repeat_what_operations_tell() -> None:
    past = history(PAST)
    sums = summary(past.operations)
    assert sums.repeated is not None
    counts = {f.value: count for f, count in sums.record_counts.items()}
    files = [FileSurvey(table="records", row_count=0, repeated=0)] * (RECORD_BUCKET_COUNT - 1)

    def with_sum(repeated: int) -> tuple[str, frozenset[str]]:
        told = FileSurvey(table="records", row_count=3, rows_by_f=counts, repeated=repeated)
        return wrong(surveys=(*WHOLE, *files, told))

    assert with_sum(sums.repeated) == ("", frozenset())
    reason, tables = with_sum(sums.repeated + 1)
    assert ("do not repeat" in reason, tables) == (True, {"operations", "records"})
