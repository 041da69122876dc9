from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fencepost.clusters.node_port.effects import ADVANCE, APPEND, SYNC, TRUNCATE, WRITE
from fencepost.clusters.node_port.storage import (
    METADATA,
    SNAPSHOT,
    Contents,
    MetadataBatch,
    Snapshot,
)
from fencepost.clusters.reference.nodes.quorum.metadata_log import MetadataLog
from fencepost.clusters.reference.nodes.quorum.replay import Replayer
from fencepost.clusters.reference.nodes.records import ProducerIdsRecord


def _batch(base: int, epoch: int, count: int = 1) -> MetadataBatch:
    records = tuple(ProducerIdsRecord(-1, -1, base + place) for place in range(count))
    return MetadataBatch(base, epoch, records)


def _log(*batches: MetadataBatch) -> MetadataLog:
    log = MetadataLog()
    for batch in batches:
        log.append(batch, [])
    return log


def _snapshot(end: int, epoch: int) -> Snapshot:
    return Snapshot(end_offset=end, epoch=epoch, records=(ProducerIdsRecord(-1, -1, end - 1),))


def _loaded(snapshot: Snapshot | None, *batches: MetadataBatch, start: int = 0) -> MetadataLog:
    log = MetadataLog()
    log.load(
        Contents(
            files={} if snapshot is None else {SNAPSHOT: snapshot},
            logs={METADATA: list(batches)},
            log_starts={METADATA: start},
        )
    )
    return log


_LENGTHS = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=8)
"""(records, by how much the epoch grows) of batches in turn."""


def _built(lengths: list[tuple[int, int]]) -> list[MetadataBatch]:
    found: list[MetadataBatch] = []
    epoch = 1
    for count, growth in lengths:
        epoch += growth
        found.append(_batch(found[-1].end_offset if found else 0, epoch, count))
    return found


@given(_LENGTHS, st.integers(-1, 25), st.integers(-1, 25))
def test_batches_between_two_offsets_are_as_a_slow_look_finds_them(
    lengths: list[tuple[int, int]], start: int, end: int
) -> None:
    built = _built(lengths)
    expected = [one for one in built if one.end_offset > start and one.end_offset <= end]
    assert _log(*built).batches(start, end) == expected


@given(_LENGTHS, st.integers(0, 20), st.integers(0, 25))
def test_the_end_of_an_epoch_is_as_a_slow_look_finds_it_also_after_a_truncation(
    lengths: list[tuple[int, int]], epoch: int, offset: int
) -> None:
    built = _built(lengths)
    log = _log(*built)
    effects: list[tuple[Any, ...]] = []
    log.truncate(offset, effects)
    kept = [one for one in built if one.end_offset <= offset]
    assert log.end == (kept[-1].end_offset if kept else 0)
    assert effects == ([] if len(kept) == len(built) else [(TRUNCATE, METADATA, log.end)])
    below = [one for one in kept if one.epoch <= epoch]
    assert log.end_of(epoch) == ((below[-1].epoch, below[-1].end_offset) if below else (0, 0))
    assert log.last_epoch == (kept[-1].epoch if kept else 0)


def test_a_snapshot_cuts_memory_at_once_and_the_disk_once_it_is_durable() -> None:
    log = _log(_batch(0, 1, 2), _batch(2, 1), _batch(3, 2))
    effects: list[tuple[Any, ...]] = []
    log.cut(_snapshot(3, 1), effects)
    assert [effect[0] for effect in effects] == [WRITE, SYNC]
    assert (log.start, log.start_epoch, log.end, log.last_epoch) == (3, 1, 4, 2)
    assert log.end_of(1) == (1, 3)
    effects.clear()
    log.trim(3, effects)
    log.trim(3, effects)
    assert effects == [(ADVANCE, METADATA, 3)]


def test_a_snapshot_that_ends_within_a_batch_or_at_the_start_is_not_taken() -> None:
    log = _log(_batch(0, 1, 2))
    effects: list[tuple[Any, ...]] = []
    for end in (0, 1, 3):
        log.cut(_snapshot(end, 1), effects)
    assert (effects, log.start) == ([], 0)


def test_a_truncation_never_goes_below_the_snapshot() -> None:
    log = _log(_batch(0, 1), _batch(1, 1))
    log.cut(_snapshot(1, 1), [])
    log.truncate(0, [])
    assert (log.start, log.end, log.last_epoch) == (1, 1, 1)


def test_a_disk_whose_log_was_not_cut_yet_is_cut_when_it_is_loaded() -> None:
    log = _loaded(_snapshot(2, 1), _batch(0, 1), _batch(1, 1), _batch(2, 3))
    assert (log.start, log.end, log.last_epoch, log.high_watermark) == (2, 3, 3, 2)
    effects: list[tuple[Any, ...]] = []
    log.trim(log.start, effects)
    assert effects == [(ADVANCE, METADATA, 2)]


def test_a_disk_whose_log_left_the_snapshots_branch_loses_it() -> None:
    for batches in (
        [_batch(0, 1), _batch(1, 2), _batch(2, 3)],
        [_batch(0, 1), _batch(1, 1, 4)],
    ):
        log = _loaded(_snapshot(2, 1), *batches)
        assert (log.start, log.end, log.last_epoch) == (2, 2, 1)
        effects: list[tuple[Any, ...]] = []
        log.trim(log.start, effects)
        assert effects == [(TRUNCATE, METADATA, 0), (ADVANCE, METADATA, 2)]


def test_a_disk_that_lost_its_log_but_not_its_snapshot_begins_there() -> None:
    for batches in ([], [_batch(0, 1)]):
        log = _loaded(_snapshot(4, 2), *batches)
        assert (log.start, log.end, log.last_epoch) == (4, 4, 2)
        effects: list[tuple[Any, ...]] = []
        log.trim(log.start, effects)
        log.append(_batch(4, 2), effects)
        assert [effect[0] for effect in effects] == [ADVANCE, APPEND]


def test_the_high_watermark_moves_forwards_only() -> None:
    log = _log(_batch(0, 1, 5))
    assert log.commit(3, [])
    assert not log.commit(2, [])
    assert log.high_watermark == 3


def test_an_image_follows_the_log_and_says_what_was_applied() -> None:
    log, replayer = _log(_batch(0, 1), _batch(1, 2, 2)), Replayer()
    applied = replayer.advance(log, 2)
    assert [(offset, epoch) for offset, epoch, _ in applied] == [(0, 1)]
    applied = replayer.advance(log, 3)
    assert [(offset, epoch) for offset, epoch, _ in applied] == [(1, 2), (2, 2)]
    assert (replayer.image.offset, replayer.image.epoch, replayer.rebuilt) == (3, 2, False)
    assert replayer.advance(log, 3) == []


def test_an_image_below_the_log_start_is_rebuilt_from_the_snapshot() -> None:
    log, replayer = _log(_batch(0, 1), _batch(1, 1), _batch(2, 1)), Replayer()
    replayer.advance(log, 1)
    log.cut(_snapshot(2, 1), [])
    assert replayer.advance(log, 1) == []
    applied = replayer.advance(log, 3)
    assert replayer.rebuilt
    assert [offset for offset, _, _ in applied] == [2]
    assert replayer.image.next_producer_id == 2
    replayer.advance(log, 3)
    assert not replayer.rebuilt


def test_an_image_that_may_not_reach_the_snapshot_yet_stays_as_it_is() -> None:
    log, replayer = _log(_batch(0, 1), _batch(1, 1), _batch(2, 1)), Replayer()
    log.cut(_snapshot(3, 1), [])
    assert replayer.advance(log, 2) == []
    assert replayer.image.offset == 0
