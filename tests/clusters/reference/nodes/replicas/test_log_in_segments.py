"""The batches of a log, in segments, are the list that they stand for."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clusters.node_port.batches import Batches
from clusters.node_port.storage import Batch

pytestmark = pytest.mark.usefixtures("short_segments")

_DEEDS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 3)),
        st.tuples(st.just("extend"), st.integers(0, 10)),
        st.tuples(st.just("truncate"), st.integers(0, 20)),
        st.tuples(st.just("copy"), st.just(0)),
    ),
    max_size=40,
)


@given(_DEEDS)
def test_whatever_is_done_to_it_it_is_that_list(deeds: list[tuple[str, int]]) -> None:
    ours, plain = Batches(), list[Batch]()
    copies: list[tuple[Batches, list[Batch]]] = []
    for deed, number in deeds:
        if deed == "append":
            batch = _batch(plain[-1].end_offset if plain else 0, number)
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
        else:
            copies.append((Batches(ours), list(plain)))
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


def _is_that_list(found: Batches, expected: list[Batch]) -> None:
    count = len(expected)
    assert len(found) == count
    assert list(found) == expected
    assert [found[place] for place in range(-count, count)] == expected * 2
    for start in range(count + 1):
        for stop in range(count + 2):
            assert found[start:stop] == expected[start:stop]
    for offset in range(expected[-1].end_offset + 2 if expected else 2):
        assert found.count_before(offset) == sum(one.base_offset < offset for one in expected)


def _batch(base_offset: int, count: int) -> Batch:
    return Batch(base_offset, 0, count, -1, -1, -1, None)
