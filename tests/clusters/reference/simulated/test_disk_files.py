"""Simulated disks as files: those that a process would have written, and read as those are."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost.clusters.node_port.storage import (
    CLEAN_STOP,
    HIGH_WATERMARKS,
    META_PROPERTIES,
    METADATA,
    QUORUM_STATE,
    SNAPSHOT,
    Batch,
    MetadataBatch,
    MetaProperties,
    QuorumState,
    Snapshot,
)
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.record_batches import scan_batches
from fencepost.clusters.reference.codec.batches import produced
from fencepost.clusters.reference.codec.record_definitions import definitions
from fencepost.clusters.reference.codec.small_batches import made_batch
from fencepost.clusters.reference.nodes.records import (
    ConfigRecord,
    LeaderChangeMessage,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    TopicRecord,
)
from fencepost.clusters.reference.shell.disk import DataDirectories
from fencepost.clusters.reference.shell.formatting import format_directory
from fencepost.clusters.reference.simulated.append_times import AppendTimes
from fencepost.clusters.reference.simulated.disk_files import client_bytes, keep_cuts, write_disks
from fencepost.clusters.reference.simulated.witness import write_simulated_witness
from fencepost.clusters.simulation.disk import Disk
from fencepost.clusters.witness.metadata_log import read_metadata_log
from fencepost.clusters.witness.witness import write_witness
from fencepost.workloads.clients.columns import messages_of
from fencepost.workloads.simulated.payload import Payload

ONE = NodeName("controller-1")
B1 = NodeName("broker-1")
_VOTERS = (1001,)
_ORIGIN_NS = 1_700_000_000_000_000_000
_META = MetaProperties(cluster_id="c", node_id=1, directory_id=5)


class _Node:
    """A disk, and what is kept of it."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.disk = Disk(lambda: 0.0)
        self.wipe()
        keep_cuts(self.disk, directory / "kept", AppendTimes(_ORIGIN_NS))

    def append(self, first: int, last: int, *, epoch: int = 1) -> None:
        """Append batches of one record each."""
        for offset in range(first, last + 1):
            self.disk.append(METADATA, MetadataBatch(offset, epoch, (NoOpRecord(),)))

    def cut(self, end: int, *, epoch: int = 1) -> None:
        """Begin at a snapshot, its own or a leader's."""
        self.disk.write(SNAPSHOT, Snapshot(end_offset=end, epoch=epoch, records=(_TOPIC,)))
        self.disk.advance(METADATA, end)

    def wipe(self) -> None:
        self.disk.format({META_PROPERTIES: _META})

    def log(self) -> str:
        """The rows: `0-4 (5) 6-7`, snapshots by their end offsets in brackets."""
        times = AppendTimes(_ORIGIN_NS)
        data = self._directory / "data"
        write_disks({ONE: self.disk}, data, voters=_VOTERS, topics=(), times=times)
        kept = self._directory / "kept"
        pieces = list(read_metadata_log(ONE, data / ONE, kept=kept, definitions=definitions()))
        shutil.rmtree(data)
        assert [piece.damages for piece in pieces if piece.damages] == []
        rows = [row for piece in pieces for row in piece.rows.to_pylist()]
        words: list[str] = []
        for row in rows:
            at = row["metadata_offset"]
            if row["snapshot"]:
                words += [f"({at + 1})"] if words[-1:] != [f"({at + 1})"] else []
            elif words and words[-1].endswith(f"-{at - 1}"):
                words[-1] = f"{words[-1].split('-')[0]}-{at}"
            else:
                words.append(f"{at}-{at}")
        return " ".join(words)


_TOPIC = TopicRecord("t", 77)


@pytest.fixture
def node(tmp_path: Path) -> _Node:
    return _Node(tmp_path)


def test_what_a_node_cuts_is_in_front_of_what_it_has(node: _Node) -> None:
    node.append(0, 5)
    node.cut(4)
    node.append(6, 9)
    node.cut(8)
    assert node.log() == "0-9"


def test_a_snapshot_is_told_where_what_was_before_it_is_not_there(node: _Node) -> None:
    node.append(0, 5)
    node.cut(4)
    node.wipe()
    node.cut(8)
    node.append(8, 9)
    assert node.log() == "0-3 (8) 8-9"
    node.cut(10)
    node.append(10, 11)
    assert node.log() == "0-3 (8) 8-11"


def test_a_snapshot_that_goes_on_from_what_was_kept_marks_another_life_all_the_same(
    node: _Node,
) -> None:
    node.append(0, 5)
    node.cut(4)
    node.wipe()
    node.cut(4)
    node.append(4, 6)
    assert node.log() == "0-3 (4) 4-6"


def test_a_log_that_begins_anew_supersedes_what_was_kept(node: _Node) -> None:
    node.append(0, 9)
    node.cut(6)
    node.wipe()
    node.append(0, 7)
    assert node.log() == "0-7"
    node.cut(4)
    assert node.log() == "0-7"
    node.wipe()
    node.cut(2)
    node.append(2, 3)
    assert node.log() == "0-1 (2) 2-3"


def test_a_disk_that_is_put_back_goes_on_from_what_was_kept_until_then(node: _Node) -> None:
    node.append(0, 5)
    node.cut(4)
    node.disk.snapshot("before")
    node.append(6, 9)
    node.cut(8)
    node.disk.rollback("before")
    assert node.log() == "0-5"
    node.append(6, 7, epoch=2)
    node.cut(6)
    assert node.log() == "0-7"


def test_records_that_were_undone_are_not_there(node: _Node) -> None:
    """Only what a snapshot of the node's own sums up was surely committed."""
    node.append(0, 9)
    node.disk.truncate(METADATA, 4)
    node.append(4, 5, epoch=2)
    node.cut(6, epoch=2)
    node.append(6, 8, epoch=2)
    node.disk.truncate(METADATA, 6)
    node.cut(9, epoch=3)
    node.append(9, 9, epoch=3)
    assert node.log() == "0-5 (9) 9-9"
    node.append(10, 11, epoch=3)
    node.cut(12, epoch=4)  # another log's: it ends with a record of a later epoch
    assert node.log() == "0-5 (9) (12)"


def test_a_cut_may_come_after_the_next_snapshot_was_written(node: _Node) -> None:
    node.append(0, 5)
    node.disk.write(SNAPSHOT, Snapshot(end_offset=4, epoch=1, records=(_TOPIC,)))
    node.disk.write(SNAPSHOT, Snapshot(end_offset=6, epoch=1, records=(_TOPIC,)))
    node.disk.advance(METADATA, 4)
    assert node.log() == "0-5"
    node.disk.advance(METADATA, 6)
    node.append(6, 6)
    assert node.log() == "0-6"


def test_a_disk_without_a_log_has_none(node: _Node) -> None:
    node.append(0, 5)
    node.cut(4)
    node.wipe()
    assert node.log() == ""


def test_times_of_batches_are_those_of_their_epoch() -> None:
    times = AppendTimes(5_000_000)
    for at, (offset, epoch) in enumerate([(0, 1), (1, 1), (1, 2), (3, 2), (0, 1)]):
        times.add(at * 1_000_000, offset, epoch)

    def of(offset: int, epoch: int) -> int:
        return times.of(MetadataBatch(offset, epoch, ()))

    assert [of(1, 2), of(3, 2), of(0, 1)] == [7, 8, 9]
    assert [of(1, 1), of(2, 2), of(0, 3)] == [9, 9, 9]  # not known: the latest


_KEY = (77, 0)
_LOG = (
    MetadataBatch(0, 1, (LeaderChangeMessage(1001, (1001,)),)),
    MetadataBatch(1, 1, (TopicRecord("t", 77), PartitionRecord(77, 0, (1, 2), (1, 2), 1, 0, 0))),
    MetadataBatch(3, 2, (PartitionChangeRecord(77, 0, isr=(1,), leader=None),)),
    MetadataBatch(4, 2, (NoOpRecord(), ConfigRecord(4, "1", "x", None))),
)


class _Disk(Protocol):
    """The part of a disk that effects ask for, of a process and of a simulated host."""

    def append(self, log: Any, batch: Any) -> None: ...
    def extend(self, log: Any, batches: Any) -> None: ...
    def truncate(self, log: Any, offset: int) -> None: ...
    def advance(self, log: Any, offset: int) -> None: ...
    def create(self, log: Any, topic: str) -> None: ...
    def write(self, name: Any, value: Any) -> None: ...


def _acts(sent: Callable[[int, int, tuple[int, ...]], Batch]) -> Iterator[Callable[[_Disk], None]]:
    """Yield what a node does to its disk. `sent`: a client's batch of values, as it comes."""
    vote = QuorumState(epoch=2, voted_for=1001, leader_id=1001)
    yield lambda disk: disk.write(QUORUM_STATE, vote)
    yield from (lambda disk, one=one: disk.append(METADATA, one) for one in _LOG)
    yield lambda disk: disk.truncate(METADATA, 4)
    yield lambda disk: disk.append(METADATA, MetadataBatch(4, 3, (NoOpRecord(),)))
    yield lambda disk: disk.write(
        SNAPSHOT, Snapshot(end_offset=3, epoch=1, records=_LOG[1].records)
    )
    yield lambda disk: disk.advance(METADATA, 3)
    yield lambda disk: disk.append(METADATA, MetadataBatch(5, 3, (NoOpRecord(), NoOpRecord())))
    yield lambda disk: disk.create(_KEY, "t")
    yield lambda disk: disk.create((78, 1), "u")
    yield lambda disk: disk.append(_KEY, sent(0, 1, (3, 1 << 40, 0)))
    yield lambda disk: disk.extend(_KEY, (sent(3, 1, (7,)), sent(4, 2, tuple(range(200)))))
    yield lambda disk: disk.truncate(_KEY, 4)
    yield lambda disk: disk.extend(_KEY, (sent(4, 4, (9, 9)),))
    yield lambda disk: disk.append((78, 1), sent(0, 1, (5,)))
    yield lambda disk: disk.write(HIGH_WATERMARKS, ((_KEY, 4), ((78, 1), 1)))
    yield lambda disk: disk.write(CLEAN_STOP, True)


def test_the_files_are_those_of_a_process_and_so_are_the_tables(tmp_path: Path) -> None:
    times, topics = AppendTimes(_ORIGIN_NS), ("t", "u")
    for batch in (*_LOG[:-1], MetadataBatch(4, 3, ()), MetadataBatch(5, 3, ())):
        times.add(0, batch.base_offset, batch.epoch)
    format_directory(tmp_path / "process", node_id=1, cluster_id="c", directory_id=5)
    process = DataDirectories(
        (tmp_path / "process",),
        metadata=None,
        voters=_VOTERS,
        kept=tmp_path / "kept",
        now_ms=lambda: times.stamp_ms(0),
    )
    process.contents(incarnation_id=1)
    for act in _acts(lambda *one: _as_bytes(*one, made_ms=times.stamp_ms(0))):
        act(process)
    process.close()
    simulated = Disk(lambda: 0.0)
    simulated.format({META_PROPERTIES: _META})
    keep_cuts(simulated, tmp_path / "simulated-kept" / B1, times)
    for act in _acts(_as_values):
        act(simulated)

    written = write_disks(
        {B1: simulated}, tmp_path / "simulated", voters=_VOTERS, topics=topics, times=times
    )
    assert _files(written[B1]) == _files(tmp_path / "process")
    assert _files(tmp_path / "simulated-kept" / B1) == _files(tmp_path / "kept")
    assert len(_files(tmp_path / "kept")) == 1

    report = write_witness(
        {B1: tmp_path / "process"},
        topics=topics,
        definitions=definitions(),
        raw=tmp_path / "raw",
        kept={B1: tmp_path / "kept"},
    )
    (tmp_path / "simulated-raw").mkdir()
    found = write_simulated_witness(
        {B1: simulated},
        voters=_VOTERS,
        kept=tmp_path / "simulated-kept",
        topics=topics,
        times=times,
        raw=tmp_path / "simulated-raw",
    )
    assert found == report
    assert report.metadata_record_counts == {B1: 7}
    assert report.replica_record_count == 7
    tables = _tables(tmp_path / "raw")
    assert _tables(tmp_path / "simulated-raw") == tables  # and no file of disks is left
    values = [row["value"] for row in _rows(tables, "replica_records")]
    assert sorted(values) == [0, 3, 5, 7, 9, 9, 1 << 40]


def test_a_client_s_batch_keeps_its_producer_and_its_time() -> None:
    batch = Batch(-1, -1, 2, 41, 3, 17, Payload.of((6, 1), made_ns=2_000_000))
    sent = client_bytes(batch, AppendTimes(_ORIGIN_NS))
    found = produced(sent)  # it compares the checksum
    assert (found.count, found.producer_id) == (2, 41)
    assert (found.producer_epoch, found.base_sequence) == (3, 17)
    ms = AppendTimes(_ORIGIN_NS).stamp_ms(2_000_000)
    assert scan_batches(sent).batches[0].base_timestamp_ms == ms


def test_what_only_the_disk_of_a_node_that_never_started_lacks_is_left_out(tmp_path: Path) -> None:
    bare, brokers = Disk(lambda: 0.0), Disk(lambda: 0.0)
    times = AppendTimes(_ORIGIN_NS)
    written = write_disks({ONE: bare}, tmp_path / "q", voters=_VOTERS, topics=(), times=times)
    assert written == {}
    brokers.create(_KEY, "t")
    written = write_disks({B1: brokers}, tmp_path / "z", voters=(), topics=["t"], times=times)
    assert {path.split("/")[0] for path in _files(written[B1])} == {"t-0"}


def _as_bytes(offset: int, epoch: int, values: tuple[int, ...], *, made_ms: int) -> Batch:
    """A batch in a process: what a real client of the workload sends."""
    sent = [(None, one["value"]) for one in messages_of(np.array(values), value_bytes=8)]
    payload = made_batch(0, -1, sent, time_ms=made_ms)  # type: ignore[arg-type]  # bytes
    return Batch(offset, epoch, len(values), -1, -1, -1, payload)


def _as_values(offset: int, epoch: int, values: tuple[int, ...]) -> Batch:
    return Batch(offset, epoch, len(values), -1, -1, -1, Payload.of(values, made_ns=0))


def _files(directory: Path) -> dict[str, bytes]:
    paths = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in paths}


def _tables(raw: Path) -> dict[str, pa.Table]:
    paths = [path for path in raw.rglob("*") if path.is_file()]
    return {str(path.relative_to(raw)): pq.read_table(path) for path in paths}


def _rows(tables: Mapping[str, pa.Table], name: str) -> list[dict[str, Any]]:
    return [row for path, one in sorted(tables.items()) if name in path for row in one.to_pylist()]
