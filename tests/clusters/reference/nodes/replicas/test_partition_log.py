"""A partition's log, against a list of records."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.clusters.node_port.storage import Batch
from fencepost.clusters.reference.nodes.replicas.log import NO_EPOCH, PartitionLog

pytestmark = pytest.mark.usefixtures("short_segments")

KEY = (1, 0)
UNBOUNDED = 1 << 30

batches = st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=8)
"""(records, how much the leader epoch grows before them)."""


def built(shape: list[tuple[int, int]]) -> tuple[PartitionLog, list[Batch]]:
    log, model, epoch = PartitionLog(KEY, (), 0), [], 0
    for count, growth in shape:
        epoch += growth
        one = Batch(log.end, epoch, count, -1, -1, -1, tuple(range(count)))
        log.append(one)
        model.append(one)
    return log, model


@given(batches, st.integers(0, 24), st.integers(0, 24))
def test_what_is_read_is_whole_batches_from_the_one_that_has_the_offset(
    shape: list[tuple[int, int]], offset: int, up_to: int
) -> None:
    log, model = built(shape)
    if not offset < min(up_to, log.end):
        return
    expected = [b for b in model if b.end_offset > offset and b.end_offset <= up_to]
    assert list(log.read(offset, up_to, UNBOUNDED, UNBOUNDED)) == expected


@given(batches, st.integers(0, 24))
def test_what_is_cut_is_every_batch_that_ends_above_the_offset(
    shape: list[tuple[int, int]], offset: int
) -> None:
    log, model = built(shape)
    log.high_watermark = log.end
    kept = [one for one in model if one.end_offset <= offset]
    assert log.cut(offset) == log.end == (kept[-1].end_offset if kept else 0)
    assert list(log.batches) == kept
    assert log.last_epoch == (kept[-1].leader_epoch if kept else NO_EPOCH)
    assert log.high_watermark == log.end
    again, _ = built([])
    for one in kept:
        again.append(one)
    assert all(log.end_of_epoch(epoch) == again.end_of_epoch(epoch) for epoch in range(20))


@given(batches, st.integers(0, 20))
def test_an_epoch_ends_where_the_next_one_begins(shape: list[tuple[int, int]], epoch: int) -> None:
    log, model = built(shape)
    older = [one.leader_epoch for one in model if one.leader_epoch <= epoch]
    if not older:
        assert log.end_of_epoch(epoch) == (NO_EPOCH, -1)
        return
    newer = [one.base_offset for one in model if one.leader_epoch > epoch]
    assert log.end_of_epoch(epoch) == (older[-1], newer[0] if newer else log.end)


def test_an_answer_has_one_batch_at_least_and_no_more_than_its_bounds_allow() -> None:
    log, model = built([(3, 0), (3, 0), (3, 0)])
    assert log.read(0, 9, 1, UNBOUNDED) == (model[0],)
    assert log.read(0, 9, 6, UNBOUNDED) == (model[0], model[1])
    sized = PartitionLog(KEY, (), 0)
    for place in range(3):
        sized.append(Batch(place, 0, 1, -1, -1, -1, b"12345"))
    assert len(sized.read(0, 3, UNBOUNDED, 10)) == 2


def test_a_log_never_starts_with_a_high_watermark_above_its_end() -> None:
    assert PartitionLog(KEY, [Batch(0, 0, 2, -1, -1, -1, ())], 7).high_watermark == 2


@given(batches)
def test_a_log_that_was_there_before_is_the_one_that_was_appended(
    shape: list[tuple[int, int]],
) -> None:
    log, model = built(shape)
    again = PartitionLog(KEY, model, log.end)
    assert (again.end, again.last_epoch) == (log.end, log.last_epoch)
    assert [again.end_of_epoch(epoch) for epoch in range(-1, 20)] == [
        log.end_of_epoch(epoch) for epoch in range(-1, 20)
    ]
    assert again.cut(log.end // 2) == log.cut(log.end // 2)


@given(batches, st.integers(0, 8), st.integers(0, 8))
def test_batches_taken_together_are_those_taken_one_by_one(
    shape: list[tuple[int, int]], first: int, second: int
) -> None:
    log, model = built(shape)
    again = PartitionLog(KEY, (), 0)
    places = [0, *sorted((min(first, len(model)), min(second, len(model)))), len(model)]
    for begin, end in pairwise(places):
        if begin < end:
            again.extend(model[begin:end])
    assert list(again.batches) == model
    assert (again.end, again.last_epoch) == (log.end, log.last_epoch)
    assert all(again.end_of_epoch(epoch) == log.end_of_epoch(epoch) for epoch in range(-1, 20))
