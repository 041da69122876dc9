"""What a node's disk keeps through restarts, torn ends and lost snapshots; the witness reads it."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from wire_samples import client_batch, placed

from fencepost.clusters.node_port.storage import (
    CLEAN_STOP,
    HIGH_WATERMARKS,
    META_PROPERTIES,
    METADATA,
    QUORUM_STATE,
    SNAPSHOT,
    Batch,
    Contents,
    MetadataBatch,
    MetaProperties,
    QuorumState,
    Snapshot,
)
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.codec.record_definitions import definitions
from fencepost.clusters.reference.nodes.records import LeaderChangeMessage, NoOpRecord, TopicRecord
from fencepost.clusters.reference.shell.disk import DataDirectories
from fencepost.clusters.reference.shell.formatting import format_directory
from fencepost.clusters.witness.metadata_log import read_metadata_log
from fencepost.clusters.witness.witness import find_replicas, read_replica

_KEY = (77, 0)
_LOG = (
    MetadataBatch(0, 1, (LeaderChangeMessage(1001, (1001,)),)),
    MetadataBatch(1, 1, (TopicRecord("t", 77), NoOpRecord())),
    MetadataBatch(3, 2, (NoOpRecord(),)),
)
_RECORDS = (
    placed(client_batch(b"a" * 8, b"b" * 8), base_offset=0, leader_epoch=3, count=2),
    placed(client_batch(b"c" * 8), base_offset=2, leader_epoch=5, count=1),
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    format_directory(path, node_id=1, cluster_id="c")
    return path


class _Node:
    """A disk that is opened again and again."""

    def __init__(self, data: Path) -> None:
        self._data = data
        self.disk = self._opened()
        self.contents = self._look()

    def restarted(self) -> Contents:
        self.disk.close()
        self.disk = self._opened()
        self.contents = self._look()
        return self.contents

    def _opened(self) -> DataDirectories:
        return DataDirectories((self._data,), metadata=None, voters=(1001,))

    def _look(self) -> Contents:
        found = self.disk.contents(incarnation_id=9)
        if not found.files[CLEAN_STOP]:
            recovered = self.disk.recovered(self.disk.recovery(lambda: False)())
            found.logs |= recovered.logs
            found.files |= recovered.files
        return found


@pytest.fixture
def node(data: Path) -> Iterator[_Node]:
    found = _Node(data)
    yield found
    found.disk.close()


def test_a_new_disk_has_its_meta_properties_and_no_log(node: _Node) -> None:
    assert node.contents.files[META_PROPERTIES].node_id == 1
    assert node.contents.files[META_PROPERTIES].mode == "enabled"
    assert node.contents.logs == {}
    assert node.contents.files[CLEAN_STOP] is False
    assert node.contents.incarnation_id == 9


def test_without_a_quorum_a_disk_need_not_be_formatted_and_keeps_whose_it_is(
    tmp_path: Path,
) -> None:
    disk = DataDirectories((tmp_path,), metadata=None, voters=())
    assert META_PROPERTIES not in disk.contents(incarnation_id=9).files
    own = MetaProperties(cluster_id="c", node_id=3, directory_id=0, mode="")
    disk.write(META_PROPERTIES, own)
    disk.create(_KEY, "t")
    disk.append(_KEY, _RECORDS[0])
    disk.write(CLEAN_STOP, True)
    disk.close()
    assert (tmp_path / "meta.properties").read_text() == "version=0\nbroker.id=3\ncluster.id=c\n"
    disk = DataDirectories((tmp_path,), metadata=None, voters=())
    found = disk.contents(incarnation_id=9)
    assert found.files[META_PROPERTIES] == own
    assert found.logs == {_KEY: [_RECORDS[0]]}
    (tmp_path / "meta.properties").unlink()
    assert disk.contents(incarnation_id=9).logs == found.logs
    disk.close()


def test_an_unformatted_disk_has_nothing(tmp_path: Path) -> None:
    contents = _Node(tmp_path).contents
    assert META_PROPERTIES not in contents.files
    assert contents.logs == {}


def test_what_was_appended_is_there_after_a_restart(node: _Node) -> None:
    for batch in _LOG:
        node.disk.append(METADATA, batch)
    node.disk.create(_KEY, "t")
    for record in _RECORDS:
        node.disk.append(_KEY, record)
    found = node.restarted()
    assert found.logs == {METADATA: list(_LOG), _KEY: list(_RECORDS)}
    assert found.topics == {_KEY: "t"}


def test_small_files_are_replaced_as_a_whole(node: _Node) -> None:
    node.disk.create(_KEY, "t")
    state = QuorumState(epoch=4, voted_for=1001, leader_id=-1)
    snapshot = Snapshot(end_offset=3, epoch=1, records=(TopicRecord("t", 77),))
    for name, value in (
        (QUORUM_STATE, QuorumState(epoch=3, voted_for=-1, leader_id=1001)),
        (QUORUM_STATE, state),
        (SNAPSHOT, replace(snapshot, end_offset=1)),
        (SNAPSHOT, snapshot),
        (HIGH_WATERMARKS, ((_KEY, 2), ((78, 0), 3))),
        (CLEAN_STOP, True),
    ):
        node.disk.write(name, value)
    found = node.restarted().files
    assert found[QUORUM_STATE] == state
    assert found[SNAPSHOT] == snapshot
    assert found[HIGH_WATERMARKS] == ((_KEY, 2),)
    assert found[CLEAN_STOP] is True
    node.disk.write(CLEAN_STOP, False)
    assert node.restarted().files[CLEAN_STOP] is False


def test_a_torn_end_is_cut_off(node: _Node, data: Path) -> None:
    for batch in _LOG:
        node.disk.append(METADATA, batch)
    log = data / "__cluster_metadata-0" / f"{0:020}.log"
    whole = log.read_bytes()
    log.write_bytes(whole[:-1])
    assert node.restarted().logs[METADATA] == list(_LOG[:2])
    node.disk.append(METADATA, _LOG[2])
    assert node.restarted().logs[METADATA] == list(_LOG)


def test_a_truncated_log_goes_on_from_there(node: _Node) -> None:
    for batch in _LOG:
        node.disk.append(METADATA, batch)
    node.disk.truncate(METADATA, 3)
    other = MetadataBatch(3, 4, (NoOpRecord(),))
    node.disk.append(METADATA, other)
    node.disk.truncate(METADATA, 9)
    assert node.restarted().logs[METADATA] == [*_LOG[:2], other]


@pytest.mark.parametrize(("offset", "kept"), [(1, 2), (3, 1), (4, 0), (40, 0)])
def test_a_log_begins_where_a_snapshot_ends(node: _Node, offset: int, kept: int) -> None:
    for batch in _LOG:
        node.disk.append(METADATA, batch)
    node.disk.advance(METADATA, offset)
    later = MetadataBatch(max(offset, 4), 5, (NoOpRecord(),))
    node.disk.append(METADATA, later)
    found = node.restarted()
    assert found.log_starts[METADATA] == offset
    assert found.logs[METADATA] == [*_LOG[len(_LOG) - kept :], later]


def test_an_unfinished_snapshot_does_not_count(node: _Node, data: Path) -> None:
    whole = Snapshot(end_offset=3, epoch=1, records=(TopicRecord("t", 77),))
    node.disk.write(SNAPSHOT, whole)
    path = data / "__cluster_metadata-0" / f"{9:020}-{1:010}.checkpoint"
    path.write_bytes(b"half of it")
    assert node.restarted().files[SNAPSHOT] == whole


def test_a_topic_may_come_back_before_the_old_one_is_gone(node: _Node) -> None:
    node.disk.create(_KEY, "t")
    node.disk.append(_KEY, _RECORDS[0])
    node.disk.create((78, 0), "t")
    found = node.restarted()
    assert found.logs[_KEY] == [_RECORDS[0]]
    assert found.logs[78, 0] == []
    node.disk.append(_KEY, _RECORDS[1])
    node.disk.delete(_KEY)
    assert _KEY not in node.restarted().logs


def test_a_sync_does_not_mind_what_happens_to_the_log_meanwhile(node: _Node) -> None:
    node.disk.create(_KEY, "t")
    node.disk.append(_KEY, _RECORDS[0])
    sync = node.disk.syncer((METADATA, _KEY, QUORUM_STATE, SNAPSHOT))
    node.disk.delete(_KEY)
    sync()


def test_the_witness_reads_the_metadata_log_as_it_reads_kafkas(node: _Node, data: Path) -> None:
    for batch in _LOG:
        node.disk.append(METADATA, batch)
    snapshot = Snapshot(end_offset=3, epoch=1, records=(TopicRecord("t", 77),))
    node.disk.write(SNAPSHOT, snapshot)
    node.disk.advance(METADATA, 3)
    pieces = list(read_metadata_log(NodeName("controller-1"), data, definitions=definitions()))
    assert [piece.damages for piece in pieces if piece.damages] == []
    rows = [row for piece in pieces for row in piece.rows.to_pylist()]
    assert [row["type"] for row in rows] == [
        "SnapshotHeaderRecord",
        "TopicRecord",
        "SnapshotFooterRecord",
        "NoOpRecord",
    ]
    assert rows[-1]["controller_epoch"] == 2


def test_what_is_cut_off_the_metadata_log_outlives_the_data_and_is_read_in_front(
    data: Path, tmp_path: Path
) -> None:
    def opened() -> DataDirectories:
        found = DataDirectories((data,), metadata=None, voters=(1001,), kept=tmp_path / "kept")
        found.contents(incarnation_id=9)
        return found

    disk = opened()
    for batch in _LOG:
        disk.append(METADATA, batch)
    disk.write(SNAPSHOT, Snapshot(end_offset=1, epoch=1, records=()))
    disk.advance(METADATA, 1)
    disk.write(SNAPSHOT, Snapshot(end_offset=3, epoch=1, records=(TopicRecord("t", 77),)))
    disk.advance(METADATA, 3)
    assert _places(data, tmp_path / "kept") == [(False, offset) for offset in range(4)]
    disk.close()
    shutil.rmtree(data)
    format_directory(data, node_id=1, cluster_id="c")
    disk = opened()
    # A leader's: the record at offset 3 was never in it, and may have been undone.
    disk.write(SNAPSHOT, Snapshot(end_offset=6, epoch=3, records=(TopicRecord("t", 77),)))
    disk.advance(METADATA, 6)
    disk.append(METADATA, MetadataBatch(6, 3, (NoOpRecord(), NoOpRecord())))
    before = [*((False, offset) for offset in range(3)), *[(True, 5)] * 3]
    assert _places(data, tmp_path / "kept") == [*before, (False, 6), (False, 7)]
    disk.write(SNAPSHOT, Snapshot(end_offset=8, epoch=3, records=()))
    disk.advance(METADATA, 8)
    disk.append(METADATA, MetadataBatch(8, 3, (NoOpRecord(),)))
    after = [(False, offset) for offset in (6, 7, 8)]
    assert _places(data, tmp_path / "kept") == [*before, *after]
    disk.close()
    shutil.rmtree(data)
    format_directory(data, node_id=1, cluster_id="c")
    disk = opened()
    # It begins again with the log itself, which is all that counts then.
    disk.append(METADATA, _LOG[0])
    assert _places(data, tmp_path / "kept") == [(False, 0)]
    disk.close()


def test_records_that_a_snapshot_of_another_log_replaces_are_not_kept(
    data: Path, tmp_path: Path
) -> None:
    disk = DataDirectories((data,), metadata=None, voters=(1001,), kept=tmp_path / "kept")
    disk.contents(incarnation_id=9)
    for batch in _LOG:
        disk.append(METADATA, batch)
    disk.write(SNAPSHOT, Snapshot(end_offset=4, epoch=3, records=()))
    disk.advance(METADATA, 4)
    disk.append(METADATA, MetadataBatch(4, 3, (NoOpRecord(),)))
    assert _places(data, tmp_path / "kept") == [*[(True, 3)] * 2, (False, 4)]
    disk.close()


def _places(data: Path, kept: Path) -> list[tuple[bool, int]]:
    node = NodeName("controller-1")
    pieces = list(read_metadata_log(node, data, kept=kept, definitions=definitions()))
    assert [piece.damages for piece in pieces if piece.damages] == []
    rows = [row for piece in pieces for row in piece.rows.to_pylist()]
    return [(row["snapshot"], row["metadata_offset"]) for row in rows]


def test_the_witness_reads_replicas_as_it_reads_kafkas(node: _Node, data: Path) -> None:
    node.disk.create(_KEY, "t")
    for record in _RECORDS:
        node.disk.append(_KEY, record)
    node.disk.write(HIGH_WATERMARKS, ((_KEY, 2),))
    found = find_replicas(NodeName("broker-1"), data, topics=["t"])
    assert not found.damages
    state = read_replica(found.by_key["t-0"], write=lambda _: None)
    assert not state.damages
    assert state.row["log_end_offset"] == 3
    assert state.row["high_watermark"] == 2
    assert state.row["leader_epochs"] == [
        {"leader_epoch": 3, "start_offset": 0},
        {"leader_epoch": 5, "start_offset": 2},
    ]


def test_a_batch_keeps_the_bytes_that_its_checksum_covers(node: _Node) -> None:
    node.disk.create(_KEY, "t")
    payload = client_batch(b"x" * 8)
    moved = Batch(5, 8, 1, -1, -1, -1, payload)
    node.disk.append(_KEY, moved)
    (found,) = node.restarted().logs[_KEY]
    assert (found.base_offset, found.leader_epoch) == (5, 8)
    assert found.payload[16:] == payload[16:]


def test_a_follower_keeps_the_time_at_which_the_leader_stored_a_batch(node: _Node) -> None:
    fetched = MetadataBatch(0, 1, (NoOpRecord(),), time_ms=77)
    own = MetadataBatch(1, 2, (NoOpRecord(),))
    for batch in (fetched, own):
        node.disk.append(METADATA, batch)
    assert own.time_ms > 77
    times = [batch.time_ms for batch in node.restarted().logs[METADATA]]
    assert times == [77, own.time_ms]
