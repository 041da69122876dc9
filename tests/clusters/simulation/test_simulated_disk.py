"""A disk: what survives a kill, and what of it the loss of power."""

from dataclasses import dataclass
from random import Random

from fencepost.clusters.node_port.batches import Batches
from fencepost.clusters.node_port.storage import METADATA
from fencepost.clusters.simulation.disk import Disk


@dataclass
class _Batch:
    base_offset: int
    count: int = 1

    @property
    def end_offset(self) -> int:
        return self.base_offset + self.count


def _disk(seed: int = 1, *, batches: int = 0, synced: int = 0) -> Disk:
    disk = Disk(Random(seed).random)
    for offset in range(batches):
        disk.append(METADATA, _Batch(offset))
        if offset + 1 == synced:
            disk.synced(disk.mark((METADATA,)))
    return disk


def _ends(disk: Disk) -> int:
    return len(disk.contents(0).logs.get(METADATA, ()))


def test_a_starting_node_finds_all_that_was_written() -> None:
    disk = _disk(batches=3)
    disk.write("file", 7)
    disk.create((1, 0), "t")
    found = disk.contents(42)
    assert [batch.base_offset for batch in found.logs[METADATA]] == [0, 1, 2]
    assert found.files == {"file": 7}
    assert found.topics == {(1, 0): "t"}
    assert found.incarnation_id == 42


def test_what_a_node_does_to_its_contents_does_not_reach_the_disk() -> None:
    disk = _disk(batches=2)
    found = disk.contents(0).logs[METADATA]
    assert isinstance(found, Batches)
    found.truncate(0)
    assert _ends(disk) == 2


def test_the_loss_of_power_leaves_what_was_synced_and_a_prefix_of_the_rest() -> None:
    found = set()
    for seed in range(60):
        disk = _disk(seed, batches=6, synced=3)
        disk.lose_power()
        offsets = [batch.base_offset for batch in disk.batches(METADATA)]
        assert offsets == list(range(len(offsets)))
        found.add(len(offsets))
    assert found == {3, 4, 5, 6}


def test_a_sync_that_was_not_done_when_the_power_went_keeps_nothing() -> None:
    found = set()
    for seed in range(30):
        disk = _disk(seed, batches=4)
        disk.mark((METADATA,))
        disk.lose_power()
        found.add(_ends(disk))
    assert min(found) == 0


def test_a_sync_covers_what_was_there_when_it_began() -> None:
    found = set()
    for seed in range(30):
        disk = _disk(seed, batches=2)
        mark = disk.mark((METADATA,))
        disk.append(METADATA, _Batch(2))
        disk.synced(mark)
        disk.lose_power()
        found.add(_ends(disk))
    assert found == {2, 3}


def test_a_truncation_that_was_not_synced_may_be_undone_by_the_loss_of_power() -> None:
    found = set()
    for seed in range(40):
        disk = _disk(seed, batches=6, synced=6)
        disk.truncate(METADATA, 2)
        assert _ends(disk) == 2
        disk.lose_power()
        found.add(_ends(disk))
    assert found == {2, 6}


def test_a_truncation_that_was_synced_stays() -> None:
    for seed in range(20):
        disk = _disk(seed, batches=6, synced=6)
        disk.truncate(METADATA, 2)
        disk.synced(disk.mark((METADATA,)))
        disk.lose_power()
        assert _ends(disk) == 2


def test_a_sync_from_before_a_truncation_says_nothing_of_what_came_after_it() -> None:
    found = set()
    for seed in range(40):
        disk = _disk(seed, batches=6, synced=2)
        mark = disk.mark((METADATA,))
        disk.truncate(METADATA, 2)
        disk.append(METADATA, _Batch(2))
        disk.synced(mark)
        disk.lose_power()
        found.add(_ends(disk))
    assert found == {2, 3}


def test_a_file_has_its_old_or_its_new_value_after_the_loss_of_power() -> None:
    found = set()
    for seed in range(30):
        disk = Disk(Random(seed).random)
        disk.write("file", "old")
        disk.synced(disk.mark(("file",)))
        disk.write("file", "new")
        disk.write("fresh", 1)
        disk.lose_power()
        found.add((disk.contents(0).files["file"], "fresh" in disk.contents(0).files))
    assert found == {("old", False), ("old", True), ("new", False), ("new", True)}


def test_a_log_that_begins_later_has_lost_what_is_below() -> None:
    disk = _disk(batches=6, synced=4)
    disk.advance(METADATA, 3)
    found = disk.contents(0)
    assert [batch.base_offset for batch in found.logs[METADATA]] == [3, 4, 5]
    assert found.log_starts == {METADATA: 3}
    disk.lose_power()
    assert disk.batches(METADATA)[0].base_offset == 3


def test_a_formatted_disk_has_nothing_but_its_files_and_a_copy_can_be_put_back() -> None:
    disk = _disk(batches=3)
    disk.snapshot("before")
    disk.format({"meta.properties": 1})
    assert disk.contents(0).logs == {}
    assert disk.contents(0).files == {"meta.properties": 1}
    disk.rollback("before")
    assert _ends(disk) == 3
    disk.append(METADATA, _Batch(3))
    disk.rollback("before")
    assert _ends(disk) == 3


def test_an_old_log_takes_no_longer_to_recover_than_its_last_segment() -> None:
    disk = Disk(Random(1).random)
    disk.create((1, 0), "t")
    waits_ns = []
    for offset in range(20_000):
        disk.append((1, 0), _Batch(offset))
        waits_ns.append(disk.recovery_ns)
    assert waits_ns[2_000] > waits_ns[1_000]
    assert max(waits_ns) < 500_000_000
    assert waits_ns[-1] < waits_ns[8_000]


def test_batches_written_together_are_as_durable_as_one_by_one() -> None:
    for count in (4_095, 4_096, 5_000, 8_192, 9_000):
        ends = []
        for together in (False, True):
            disk = Disk(Random(7).random)
            disk.create((1, 0), "t")
            disk.append((1, 0), _Batch(0))
            batches = [_Batch(offset) for offset in range(1, count)]
            if together:
                disk.extend((1, 0), batches)
            else:
                for batch in batches:
                    disk.append((1, 0), batch)
            disk.lose_power()
            ends.append(len(disk.batches((1, 0))))
        assert ends[0] == ends[1]


def test_a_segment_is_durable_once_the_next_one_has_begun() -> None:
    ends = set()
    for seed in range(20):
        disk = Disk(Random(seed).random)
        disk.create((1, 0), "t")
        for offset in range(5_000):
            disk.append((1, 0), _Batch(offset))
        disk.lose_power()
        ends.add(len(disk.batches((1, 0))))
    assert min(ends) >= 4_096
    assert len(ends) > 1
