"""The witness writes tables that a seal takes, of disks in any state."""

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from disks import batch, change_record, ours, segment, topic_record

from clusters.port import NodeName
from clusters.protocol.metadata_records import Definitions
from clusters.witness.metadata_log import METADATA_DIRECTORY
from clusters.witness.witness import write_witness
from history.cluster_tables import write_cluster_tables
from history.failure import HarnessError
from history.writer import bucket_of

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
