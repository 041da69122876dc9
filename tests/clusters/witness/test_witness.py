"""The witness writes tables that a seal takes, of disks in any state."""

import os
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from disks import (
    ABORT,
    COMMIT,
    CONTROL,
    TIME_MS,
    TOPIC_ID,
    TRANSACTIONAL,
    batch,
    change_record,
    checkpoint,
    ours,
    segment,
    topic_record,
)

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.metadata_records import Definitions
from fencepost.clusters.witness.metadata_log import METADATA_DIRECTORY
from fencepost.clusters.witness.witness import find_replicas, read_replica, write_witness
from fencepost.history.cluster_schema import REPLICA_RECORDS
from fencepost.history.cluster_tables import write_cluster_tables
from fencepost.history.failure import HarnessError
from fencepost.history.writer import bucket_of

CONTROLLER, ONE, TWO, GONE = map(NodeName, ("controller-1", "broker-1", "broker-2", "broker-3"))
TAIL, TORN = f"t-8/{0:020}.log", b"torn"


@pytest.fixture
def disks(tmp_path: Path) -> dict[NodeName, Path]:
    data = {node: tmp_path / node for node in (CONTROLLER, ONE, TWO, GONE)}
    for node in (CONTROLLER, ONE, TWO):
        records = [topic_record("t"), change_record(0, isr=[1]), b"\x01\x63\x00"]
        segment(data[node] / METADATA_DIRECTORY, 0, batch(records, base_offset=0))
    for node, last in ((ONE, 4), (TWO, 3)):
        for partition in range(9):
            values = [ours(10 * partition + index) for index in range(last)]
            segment(data[node] / f"t-{partition}", 0, batch(values, base_offset=0))
    tail = data[TWO] / TAIL
    tail.write_bytes(tail.read_bytes() + TORN)
    # A controller has no replicas, whatever lies on its disk.
    segment(data[CONTROLLER] / "t-0", 0, batch([ours(1)], base_offset=0))
    return data


def test_all_that_lies_on_the_disks_is_sealed(
    disks: dict[NodeName, Path], definitions: Definitions, tmp_path: Path
) -> None:
    report = write_witness(disks, topics={"t"}, definitions=definitions, raw=tmp_path / "raw")
    assert report.metadata_record_counts == {ONE: 3, TWO: 3, GONE: 0, CONTROLLER: 3}
    assert report.unknown_type_counts == {99: 3}
    assert (report.replica_count, report.replica_record_count) == (18, 9 * 7)
    no_log = f"no metadata log: there is no segment in {disks[GONE]}/{METADATA_DIRECTORY}"
    assert [str(damage).partition(": ends")[0] for damage in report.damages] == [
        f"broker-3: metadata log: {no_log}",
        f"broker-3: replicas: no data: No such file or directory: {disks[GONE]}",
        f"broker-2: t-8: {0:020}.log, byte {disks[TWO].joinpath(TAIL).stat().st_size - len(TORN)}",
    ]
    history = tmp_path / "history"
    history.mkdir()
    write_cluster_tables(tmp_path / "raw", history)
    log = pq.read_table(history / "metadata_log.parquet").to_pylist()
    assert [(row["node"], row["metadata_offset"], row["type"]) for row in log] == [
        (node, offset, name)
        for node in (ONE, TWO, CONTROLLER)
        for offset, name in enumerate(("TopicRecord", "PartitionChangeRecord", "unknown"))
    ]
    replicas = pq.read_table(history / "replicas.parquet").to_pylist()
    assert [(row["key"], row["node"], row["log_end_offset"]) for row in replicas] == [
        (f"t-{partition}", node, end)
        for partition in range(9)
        for node, end in ((ONE, 4), (TWO, 3))
    ]


def test_records_lie_in_the_bucket_of_their_key_in_order(
    disks: dict[NodeName, Path], definitions: Definitions, tmp_path: Path
) -> None:
    write_witness(disks, topics={"t"}, definitions=definitions, raw=tmp_path / "raw")
    seen = 0
    for file in sorted((tmp_path / "raw" / "replica_records").iterdir()):
        rows = pq.read_table(file).to_pylist()
        assert {f"bucket-{bucket_of(row['key']):02}.parquet" for row in rows} <= {file.name}
        order = [(row["key"], row["node"], row["offset"]) for row in rows]
        assert order == sorted(order)
        seen += len(rows)
    assert seen == 9 * 7


def test_topics_that_were_not_asked_for_are_left_out(
    disks: dict[NodeName, Path], definitions: Definitions, tmp_path: Path
) -> None:
    report = write_witness(disks, topics={"u"}, definitions=definitions, raw=tmp_path / "raw")
    assert (report.replica_count, report.replica_record_count) == (0, 0)
    assert pq.read_table(tmp_path / "raw" / "replicas.parquet").num_rows == 0


def test_a_second_look_replaces_the_first(
    disks: dict[NodeName, Path], definitions: Definitions, tmp_path: Path
) -> None:
    raw = tmp_path / "raw"
    write_witness(disks, topics={"t"}, definitions=definitions, raw=raw)
    segment(disks[ONE] / "u-0", 0, batch([ours(1)], base_offset=0))
    report = write_witness({ONE: disks[ONE]}, topics={"u"}, definitions=definitions, raw=raw)
    assert report.replica_record_count == 1
    tables = [pq.read_table(file) for file in (raw / "replica_records").glob("*.parquet")]
    assert sum(table.num_rows for table in tables) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_raw_directory_that_cannot_be_written_is_an_error(
    disks: dict[NodeName, Path], definitions: Definitions, tmp_path: Path
) -> None:
    (tmp_path / "raw").mkdir(mode=0o500)
    with pytest.raises(HarnessError, match="cannot write the witness's tables"):
        write_witness(disks, topics={"t"}, definitions=definitions, raw=tmp_path / "raw")


def test_a_raw_directory_that_is_a_file_is_an_error(
    disks: dict[NodeName, Path], definitions: Definitions, tmp_path: Path
) -> None:
    (tmp_path / "raw").touch()
    with pytest.raises(HarnessError, match="cannot write the witness's tables"):
        write_witness(disks, topics={"t"}, definitions=definitions, raw=tmp_path / "raw")


NODE = NodeName("broker-1")


def read(data: Path, key: str = "t-0") -> tuple[dict[str, Any], list[dict[str, Any]]]:
    replica = find_replicas(NODE, data, topics={"t"}).by_key[key]
    rows: list[dict[str, Any]] = []

    def write(table: Any) -> None:
        assert table.schema.equals(REPLICA_RECORDS)
        rows.extend(table.to_pylist())

    return read_replica(replica, write=write).row, rows


def test_the_replicas_of_the_wanted_topics_are_found(tmp_path: Path) -> None:
    deleted = "t-1.5b0b1a7c2d3e4f5061728394a5b6c7d8-delete"
    for name in ("t-0", "t-10", "t-x-0", "__consumer_offsets-0", deleted, "t-2.ab-future"):
        (tmp_path / name).mkdir()
    (tmp_path / "t-3").touch()
    assert list(find_replicas(NODE, tmp_path, topics={"t"}).by_key) == ["t-0", "t-10"]
    assert list(find_replicas(NODE, tmp_path, topics={"t-x"}).by_key) == ["t-x-0"]


def test_a_disk_that_is_gone_is_a_damage(tmp_path: Path) -> None:
    found = find_replicas(NODE, tmp_path / "gone", topics={"t"})
    assert found.by_key == {}
    assert found.damages == (f"no data: No such file or directory: {tmp_path}/gone",)


def test_a_replica_is_a_row_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, batch([ours(5), ours(6)], base_offset=0))
    segment(tmp_path / "t-0", 2, batch([ours(7)], base_offset=2, leader_epoch=3))
    (tmp_path / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}")
    checkpoint(tmp_path / "t-0" / "leader-epoch-checkpoint", "0 0", "3 2")
    checkpoint(tmp_path / "replication-offset-checkpoint", "t 0 2")
    row, rows = read(tmp_path)
    assert row == {
        "node": "broker-1",
        "key": "t-0",
        "topic_id": TOPIC_ID,
        "log_start_offset": 0,
        "log_end_offset": 3,
        "high_watermark": 2,
        "leader_epochs": [
            {"leader_epoch": 0, "start_offset": 0},
            {"leader_epoch": 3, "start_offset": 2},
        ],
        "record_count": 3,
        "damage": None,
    }
    assert [(one["offset"], one["value"], one["leader_epoch"]) for one in rows] == [
        (0, 5, 0),
        (1, 6, 0),
        (2, 7, 3),
    ]
    assert {(one["node"], one["key"], one["control"], one["committed"]) for one in rows} == {
        ("broker-1", "t-0", False, None)
    }
    assert [one["timestamp_ms"] for one in rows] == [TIME_MS, TIME_MS + 1, TIME_MS]


def test_markers_have_an_outcome_and_no_value(tmp_path: Path) -> None:
    marker = {"attributes": CONTROL | TRANSACTIONAL, "producer_id": 9}
    segment(
        tmp_path / "t-0",
        0,
        batch([ours(1)], base_offset=0, attributes=TRANSACTIONAL, producer_id=9),
        batch([ours(0)], base_offset=1, key=COMMIT, **marker),
        batch([bytes(6)], base_offset=2, key=ABORT, **marker),
        batch([bytes(6)], base_offset=3, key=b"\x00\x00\x00\x05", **marker),
    )
    _, rows = read(tmp_path)
    assert [(one["control"], one["committed"], one["value"]) for one in rows] == [
        (False, None, 1),
        (True, True, None),
        (True, False, None),
        (True, None, None),
    ]
    assert {(one["transactional"], one["producer_id"]) for one in rows} == {(True, 9)}


@pytest.mark.parametrize("foreign", [None, b"", b"1234567", b"\xff" * 8])
def test_what_no_client_of_a_run_wrote_has_no_value(tmp_path: Path, foreign: bytes | None) -> None:
    segment(tmp_path / "t-0", 0, batch([foreign, ours(4, size=8)], base_offset=0))
    assert [one["value"] for one in read(tmp_path)[1]] == [None, 4]


def test_equal_records_have_equal_digests_and_others_do_not(tmp_path: Path) -> None:
    values = [b"ab", b"ab", b"ac", b"", None]
    segment(
        tmp_path / "t-0",
        0,
        batch(values, base_offset=0),
        batch(values, base_offset=5, key=b"a", leader_epoch=8),
        batch(values, base_offset=10, key=b"a"),
        batch([b"b"], base_offset=15, key=b"aa"),
        batch([b"ab"], base_offset=16, key=b"a"),
    )
    digests = [one["digest"] for one in read(tmp_path)[1]]
    assert digests[0] == digests[1]
    assert digests[5:10] == digests[10:15]
    # No two of: the four values without a key, the four with one, and two more with "aab" in all.
    assert len({*digests[1:5], *digests[6:10], digests[15]}) == 9
    assert digests[16] == digests[5]


def test_a_replica_without_records_ends_where_it_begins(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0)
    row, rows = read(tmp_path)
    assert (row["log_start_offset"], row["log_end_offset"], row["record_count"]) == (0, 0, 0)
    assert (row["damage"], row["high_watermark"], row["leader_epochs"]) == (None, None, [])
    assert rows == []


def test_an_empty_segment_tells_the_end_by_its_name(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, batch([ours(1)] * 3, base_offset=0))
    segment(tmp_path / "t-0", 3)
    assert read(tmp_path)[0]["log_end_offset"] == 3


def test_what_lies_below_the_start_of_the_log_is_deleted(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 0, batch([ours(1)] * 3, base_offset=0))
    segment(tmp_path / "t-0", 3, batch([ours(2)] * 4, base_offset=3))
    checkpoint(tmp_path / "log-start-offset-checkpoint", "t 0 5")
    row, rows = read(tmp_path)
    assert (row["log_start_offset"], row["log_end_offset"], row["record_count"]) == (5, 7, 2)
    assert [one["offset"] for one in rows] == [5, 6]


def test_a_log_that_begins_later_begins_with_its_first_segment(tmp_path: Path) -> None:
    segment(tmp_path / "t-0", 3, batch([ours(2)] * 4, base_offset=3))
    row, _ = read(tmp_path)
    assert (row["log_start_offset"], row["log_end_offset"]) == (3, 7)


def test_a_torn_tail_is_a_damage_and_what_lies_before_it_is_read(tmp_path: Path) -> None:
    whole = batch([ours(1)] * 2, base_offset=0) + batch([ours(3)], base_offset=2)
    segment(tmp_path / "t-0", 0, whole[:-1])
    segment(tmp_path / "t-0", 3, batch([ours(4)], base_offset=3))
    row, rows = read(tmp_path)
    assert (row["log_end_offset"], row["record_count"], len(rows)) == (2, 2, 2)
    assert "ends within a batch of" in row["damage"]


def test_a_directory_without_a_segment_is_a_damage(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    row, rows = read(tmp_path)
    assert (row["damage"], row["log_end_offset"], rows) == ("no segment", 0, [])
