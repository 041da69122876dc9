"""Sequences of idempotent producers (KIP-98)."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.clusters.node_port.storage import Batch
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.replicas.log import PartitionLog
from fencepost.clusters.reference.nodes.replicas.producers import ACCEPTED, ProducerStates

pytestmark = pytest.mark.usefixtures("short_segments")


def one(sequence: int, *, epoch: int = 0, count: int = 1, at: int = -1, producer: int = 7) -> Batch:
    return Batch(at, 0, count, producer, epoch, sequence, ("v",) * count)


def remembered(*batches: Batch) -> ProducerStates:
    states = ProducerStates()
    for batch in batches:
        states.remember(batch)
    return states


def test_the_next_sequence_is_taken_and_a_gap_is_refused() -> None:
    states = remembered(one(0, count=3, at=0))
    assert states.judge(one(3)) == ACCEPTED
    assert states.judge(one(4)) == -Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_copy_of_one_of_the_last_five_batches_gets_its_old_offset() -> None:
    states = remembered(*(one(sequence, at=10 + sequence) for sequence in range(6)))
    assert [states.judge(one(sequence)) for sequence in range(1, 6)] == [11, 12, 13, 14, 15]
    assert states.judge(one(0)) == -Error.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_any_first_sequence_of_an_unknown_producer_is_taken() -> None:
    assert ProducerStates().judge(one(41)) == ACCEPTED


def test_a_new_producer_epoch_begins_at_sequence_zero_and_ends_the_old_one() -> None:
    states = remembered(one(0, at=0))
    assert states.judge(one(5, epoch=1)) == -Error.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert states.judge(one(0, epoch=1)) == ACCEPTED
    states.remember(one(0, epoch=1, at=1))
    assert states.judge(one(1)) == -Error.INVALID_PRODUCER_EPOCH


def test_after_the_last_int32_comes_sequence_zero() -> None:
    states = remembered(one(2**31 - 2, count=2, at=0))
    assert states.judge(one(0)) == ACCEPTED


def test_a_log_that_was_cut_is_replayed_as_a_whole() -> None:
    log, states = PartitionLog((1, 0), (), 0), ProducerStates()
    for sequence in range(4):
        log.append(one(sequence, at=sequence))
    states.catch_up(log)
    states.suspend(log)
    log.cut(2)
    states.cut(log)
    states.catch_up(log)
    assert states.judge(one(2)) == ACCEPTED
    assert states.judge(one(1)) == 1


SENT = st.lists(st.tuples(st.integers(-1, 2), st.integers(0, 2), st.integers(1, 2)), max_size=30)
"""(producer id, producer epoch, records) of batches, in any order."""


@given(SENT)
@example([(0, 0, 1)] * 4 + [(0, 1, 1), (0, 0, 1)])
def test_a_log_is_replayed_from_its_end_as_it_is_batch_by_batch(
    sent: list[tuple[int, int, int]],
) -> None:
    log, slowly, end = PartitionLog((1, 0), (), 0), ProducerStates(), 0
    for producer_id, epoch, count in sent:
        batch = one(end, epoch=epoch, count=count, at=end, producer=producer_id)
        log.append(batch)
        end += count
        if producer_id >= 0:
            slowly.remember(batch)
    states = ProducerStates()
    states.catch_up(log)
    asked = [
        one(sequence, epoch=epoch, count=count, producer=producer_id)
        for producer_id in range(3)
        for epoch in range(3)
        for sequence in range(end + 1)
        for count in (1, 2)
    ]
    assert [states.judge(batch) for batch in asked] == [slowly.judge(batch) for batch in asked]
