"""Nodes' metadata logs, from their beginnings on: what is kept of those that are cut."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from clusters.node_port.storage import METADATA, SNAPSHOT, MetadataBatch, Snapshot
from clusters.port import NodeName
from clusters.reference.nodes.records import NoOpRecord, TopicRecord
from clusters.reference.simulated.append_times import AppendTimes
from clusters.reference.simulated.kept_log import KeptLogs
from clusters.simulation.disk import Disk

ONE = NodeName("controller-1")


class _Node:
    """A disk, and what is kept of it."""

    def __init__(self, directory: Path) -> None:
        self.disk = Disk(lambda: 0.0)
        self.kept = KeptLogs(directory, AppendTimes(0))
        self.kept.follow(ONE, self.disk)

    def append(self, first: int, last: int, *, epoch: int = 1) -> None:
        """Append batches of one record each."""
        for offset in range(first, last + 1):
            self.disk.append(METADATA, MetadataBatch(offset, epoch, (NoOpRecord(),)))

    def cut(self, end: int, *, epoch: int = 1) -> None:
        """Begin at a snapshot, its own or a leader's."""
        self.disk.write(SNAPSHOT, Snapshot(end_offset=end, epoch=epoch, records=(_TOPIC,)))
        self.disk.advance(METADATA, end)

    def wipe(self) -> None:
        self.disk.format({})

    def log(self) -> str:
        """The rows: `0-4 (5) 6-7`, snapshots by their end offsets in brackets."""
        rows = [row for table in self.kept.tables(ONE) for row in table.to_pylist()]
        words: list[str] = []
        for row in rows:
            at = row["metadata_offset"]
            if row["snapshot"]:
                words.append(f"({at + 1})")
            elif words and words[-1].endswith(f"-{at - 1}"):
                words[-1] = f"{words[-1].split('-')[0]}-{at}"
            else:
                words.append(f"{at}-{at}")
        return " ".join(words)


_TOPIC = TopicRecord("t", 77)


@pytest.fixture(params=[1, 1000], ids=["each-in-a-file", "in-memory"])
def node(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[_Node]:
    monkeypatch.setattr("clusters.reference.simulated.kept_log._WAITING_MAX", request.param)
    found = _Node(tmp_path / "kept")
    yield found
    found.kept.remove()
    assert not (tmp_path / "kept").exists()


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
