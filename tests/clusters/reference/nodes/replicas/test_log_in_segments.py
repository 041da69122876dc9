"""The batches of a log, in segments, are the list that they stand for."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.clusters.node_port.batches import Batches
from fencepost.clusters.node_port.storage import Batch
from fencepost.clusters.reference.nodes.replicas.log import PartitionLog

pytestmark = pytest.mark.usefixtures("short_segments")

_DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("extend"), st.integers(0, 10)),
        st.tuples(st.just("truncate"), st.integers(0, 20)),
        st.tuples(st.just("copy"), st.just(0)),
        st.tuples(st.just("go on with"), st.integers(0, 5)),
    ),
    max_size=40,
)


@given(_DEEDS)
def test_whatever_is_done_to_it_it_is_that_list(deeds: list[tuple[str, int]]) -> None:
    ours, plain = Batches(), list[Batch]()
    copies: list[tuple[Batches, list[Batch]]] = []
    for deed, number in deeds:
        if deed == "append":
            batch = _batch(plain[-1].end_offset if plain else 0, number, epoch=number)
            ours.append(batch)
            plain.append(batch)
        elif deed == "extend":
            end = plain[-1].end_offset if plain else 0
            several = [_batch(end + place, 1) for place in range(number)]
            ours.extend(several)
            plain.extend(several)
        elif deed == "truncate":
            ours.truncate(number)
            del plain[number:]
        elif deed == "copy":
            copies.append((Batches(ours), list(plain)))
        elif number < len(copies):
            (ours, plain), copies[number] = copies[number], (ours, plain)
    for found, expected in [(ours, plain), *copies]:
        _is_that_list(found, expected)


def test_no_batch_is_found_beyond_either_end() -> None:
    found = Batches(_batch(offset, 1) for offset in range(4))

    for place in (4, -5):
        with pytest.raises(IndexError):
            found[place]


def test_what_a_segment_says_is_found_out_once_for_all_copies() -> None:
    asked: list[int] = []

    def counted(batches: list[Batch]) -> int:
        asked.append(len(batches))
        return len(batches)

    log = Batches(_batch(offset, 1) for offset in range(4))
    copy = Batches(log)

    assert [one.summary(counted) for one in (*log.full, *copy.full)] == [3, 3]
    assert asked == [3]


def test_logs_of_the_same_batches_share_their_segments() -> None:
    batches = [_batch(offset, 1) for offset in range(7)]
    leader, follower, other = Batches(batches), Batches(), Batches()
    follower.extend(batches[:2])
    follower.extend(batches[2:])
    other.extend([_batch(0, 1), *batches[1:]])
    diverged = Batches([replace(batches[0], leader_epoch=7), *batches[1:]])

    assert [one is two for one, two in zip(leader.full, follower.full, strict=True)] == [True] * 2
    assert other.full[1] is leader.full[1]
    assert diverged.full[0] is not leader.full[0]
    assert diverged[0].leader_epoch == 7


def test_a_log_that_is_far_behind_gets_whole_segments_and_shares_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fencepost.clusters.reference.nodes.replicas.log._BATCHES_MAX", 3)
    leader = PartitionLog((1, 0), [_batch(place, 1, epoch=place // 2) for place in range(11)], 0)
    follower = PartitionLog((1, 0), leader.batches[:1], 0)
    answers = []
    while follower.end < leader.end:
        answers.append(leader.read(follower.end, leader.end, 1 << 30, 1 << 30))
        follower.extend(answers[-1])

    assert list(map(len, answers)) == [2, 3, 3, 2]
    assert answers[1] is leader.batches.full[1].batches
    assert [one is two for one, two in zip(leader.batches.full, follower.batches.full, strict=True)]
    ends = [(log.last_epoch, *map(log.end_of_epoch, range(7))) for log in (leader, follower)]
    assert ends[0] == ends[1]
    assert leader.read(1, 3, 1 << 30, 1 << 30) == tuple(leader.batches[1:3])
    assert leader.read(3, leader.end, 2, 1 << 30) == tuple(leader.batches[3:5])


def _is_that_list(found: Batches, expected: list[Batch]) -> None:
    count = len(expected)
    assert len(found) == count
    assert list(found) == expected
    assert [found[place] for place in range(-count, count)] == expected * 2
    for start in range(count + 1):
        for stop in range(count + 2):
            assert found[start:stop] == expected[start:stop]
    assert found.folded(_last_of_each_epoch) == _last_of_each_epoch(expected)
    for offset in range(expected[-1].end_offset + 2 if expected else 2):
        assert found.count_before(offset) == sum(one.base_offset < offset for one in expected)


def _last_of_each_epoch(batches: Sequence[Batch]) -> list[Batch]:
    found = {one.leader_epoch: one for one in batches}
    return sorted(found.values(), key=lambda one: one.base_offset)


def _batch(base_offset: int, count: int, *, epoch: int = 0) -> Batch:
    return Batch(base_offset, epoch, count, -1, -1, -1, None)
