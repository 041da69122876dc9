"""What is done to topics: lives of a name, numbers that grow, names given up when in doubt."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.operation import Outcome
from workloads.generators.topic_lives import MetadataF, TopicLives, TopicWrite


def lives_of(slots: int, *, first_number: int = 0) -> TopicLives:
    return TopicLives(
        slots=slots,
        first_number=first_number,
        stride=3,
        lives=2,
        alters=2,
        replication_factor_max=3,
        draw=np.random.default_rng(5),
    )


def done(lives: TopicLives, outcomes: list[Outcome]) -> list[TopicWrite]:
    writes = []
    for outcome in outcomes:
        writes.append(lives.next())
        lives.ended(writes[-1], outcome)
    return writes


def test_a_name_lives_its_lives_and_another_takes_its_place() -> None:
    writes = done(lives_of(1), [Outcome.OK] * 9)
    assert [(str(write.f), write.topic, write.config_value) for write in writes] == [
        ("create-topic", "m-000000", 0),
        ("alter-config", "m-000000", 1),
        ("alter-config", "m-000000", 2),
        ("delete-topic", "m-000000", None),
        ("create-topic", "m-000000", 4),
        ("alter-config", "m-000000", 5),
        ("alter-config", "m-000000", 6),
        ("delete-topic", "m-000000", None),
        ("create-topic", "m-000003", 0),
    ]


def test_the_first_of_several_topics_stays() -> None:
    writes = done(lives_of(2), [Outcome.OK] * 40)
    kept = [write for write in writes if write.topic == "m-000000"]
    assert len(kept) == 20
    assert [write.f for write in kept] == [MetadataF.CREATE] + [MetadataF.ALTER] * 19


def test_what_failed_is_done_again_under_another_number() -> None:
    first, second = done(lives_of(1), [Outcome.FAIL, Outcome.OK])
    assert (first.f, first.topic, first.config_value) == (MetadataF.CREATE, "m-000000", 0)
    assert (second.f, second.topic, second.config_value) == (MetadataF.CREATE, "m-000000", 1)


@pytest.mark.parametrize("before", [0, 1, 3])
def test_a_write_without_a_clear_end_gives_the_name_up(before: int) -> None:
    lives = lives_of(1)
    done(lives, [Outcome.OK] * before + [Outcome.INFO])
    assert lives.next().f is MetadataF.CREATE
    assert list(lives.names) == ["m-000003", "m-000000"]


@given(st.lists(st.sampled_from(list(Outcome)), max_size=200), st.integers(1, 4))
def test_numbers_grow_names_are_not_shared_and_topics_are_what_they_are_taken_for(
    outcomes: list[Outcome], slots: int
) -> None:
    lives, other = lives_of(slots), lives_of(slots, first_number=1)
    mine = done(lives, outcomes)
    assert not {write.topic for write in mine} & {write.topic for write in done(other, outcomes)}
    numbers: dict[str, int] = {}
    alive: Counter[str] = Counter()
    for write, outcome in zip(mine, outcomes, strict=True):
        assert (write.f is MetadataF.CREATE) == (not alive[write.topic])
        assert 1 <= write.replication_factor <= 3
        if write.config_value is not None:
            assert write.config_value > numbers.get(write.topic, -1)
            numbers[write.topic] = write.config_value
        if outcome is Outcome.OK and write.f is not MetadataF.ALTER:
            alive[write.topic] = write.f is MetadataF.CREATE
    assert len(lives.names) <= 2 * slots
