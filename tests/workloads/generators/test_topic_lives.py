"""What is done to topics: lives of a name, numbers that grow, names given up when in doubt."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.history.operation import Outcome
from fencepost.workloads.generators.topic_lives import MetadataF, TopicLives, TopicWrite


def lives_of(slots: int, *, first_number: int = 0, grows: int = 0) -> TopicLives:
    return TopicLives(
        slots=slots,
        first_number=first_number,
        stride=3,
        lives=2,
        alters=2,
        partitions=3,
        grows=grows,
        replication_factors=range(1, 4),
        draw=np.random.default_rng(5),
    )


def named(writes: list[TopicWrite]) -> list[tuple[str, str]]:
    return [(str(write.f), write.topic) for write in writes]


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


def test_a_topic_grows_by_one_partition_at_a_time_and_never_beyond() -> None:
    for first_number in range(3):
        writes = done(lives_of(1, first_number=first_number, grows=2), [Outcome.OK] * 12)
        lives = [writes[:6], writes[6:]]
        for life in lives:
            assert (life[0].f, life[0].partition_count) == (MetadataF.CREATE, 3)
            grown = [write.partition_count for write in life if write.f is MetadataF.GROW]
            assert grown == [4, 5]
            assert [write.f for write in life].count(MetadataF.ALTER) == 2
            assert life[-1].f is MetadataF.DELETE


def test_a_topic_that_failed_to_grow_asks_for_the_same_again() -> None:
    lives = lives_of(2, grows=1)
    done(lives, [Outcome.OK] * 2)
    grown = []
    for _ in range(60):
        write = lives.next()
        is_growth = write.f is MetadataF.GROW
        lives.ended(write, Outcome.FAIL if is_growth else Outcome.OK)
        grown += [write.partition_count] if is_growth else []
    assert len(grown) > 2
    assert set(grown) == {4}


def test_what_failed_is_done_again_under_another_number() -> None:
    first, second = done(lives_of(1), [Outcome.FAIL, Outcome.OK])
    assert (first.f, first.topic, first.config_value) == (MetadataF.CREATE, "m-000000", 0)
    assert (second.f, second.topic, second.config_value) == (MetadataF.CREATE, "m-000000", 1)


@pytest.mark.parametrize("before", [0, 1, 3])
def test_after_a_write_without_a_clear_end_its_topic_is_deleted_and_the_name_given_up(
    before: int,
) -> None:
    lives = lives_of(1)
    writes = done(lives, [Outcome.OK] * before + [Outcome.INFO] * 3 + [Outcome.FAIL, Outcome.OK])
    assert named(writes)[before + 1 :] == [("delete-topic", "m-000000")] * 4
    assert lives.next().f is MetadataF.CREATE
    assert list(lives.names) == ["m-000003", "m-000000"]


@pytest.mark.parametrize("outcomes", [[Outcome.INFO], [Outcome.OK] * 3])
def test_a_topic_that_is_not_there_is_gone(outcomes: list[Outcome]) -> None:
    lives = lives_of(1)
    done(lives, outcomes)
    deletion = lives.next()
    assert deletion.f is MetadataF.DELETE
    lives.ended(deletion, Outcome.INFO, "UNKNOWN_TOPIC_OR_PARTITION")
    created = lives.next()
    assert (created.f, created.topic) == (MetadataF.CREATE, "m-000003")


def test_a_further_life_is_tried_again_while_the_topic_of_the_last_one_is_being_deleted() -> None:
    lives = lives_of(1)
    writes = done(lives, [Outcome.OK] * 4)
    for _ in range(3):
        writes.append(lives.next())
        lives.ended(writes[-1], Outcome.INFO, "TOPIC_ALREADY_EXISTS")
    again = lives.next()
    assert named([*writes[4:], again]) == [("create-topic", "m-000000")] * 4
    lives.ended(again, Outcome.INFO, "TOPIC_ALREADY_EXISTS")
    assert named([lives.next()]) == [("delete-topic", "m-000000")]


def test_in_its_first_life_a_topic_that_exists_already_is_one_that_came_unnoticed() -> None:
    lives = lives_of(1)
    lives.ended(lives.next(), Outcome.INFO, "TOPIC_ALREADY_EXISTS")
    assert named([lives.next()]) == [("delete-topic", "m-000000")]


def test_what_comes_back_after_its_name_was_given_up_is_deleted() -> None:
    lives = lives_of(1)
    done(lives, [Outcome.INFO, Outcome.OK, Outcome.OK])
    lives.shown(["m-000003", "m-000000", "m-000001", "t", "m-", "m-x", "m-000300"])
    assert named(done(lives, [Outcome.INFO, Outcome.OK, Outcome.FAIL, Outcome.OK])) == [
        ("delete-topic", "m-000000"),
        ("alter-config", "m-000003"),
        ("delete-topic", "m-000300"),
        ("alter-config", "m-000003"),
    ]
    assert lives.next().topic == "m-000003"
    lives.shown(["m-000000", "m-000003"])
    assert lives.next().topic == "m-000000"
    lives.shown(["m-000003"])


def test_what_is_shown_and_is_gone_is_asked_about_less_and_less() -> None:
    lives = lives_of(1)
    done(lives, [Outcome.OK] * 2)
    asked = []
    for look in range(40):
        lives.shown(["m-000300"])
        write = lives.next()
        asked += [look] if write.topic == "m-000300" else []
        lives.ended(write, Outcome.INFO, "UNKNOWN_TOPIC_OR_PARTITION")
        if write.topic == "m-000300":
            lives.ended(lives.next(), Outcome.OK)
    assert asked == [0, 2, 5, 10, 19, 36]


@given(st.lists(st.sampled_from(list(Outcome)), max_size=200), st.integers(1, 4), st.integers(0, 3))
def test_numbers_grow_names_are_not_shared_and_topics_are_what_they_are_taken_for(
    outcomes: list[Outcome], slots: int, grows: int
) -> None:
    lives = lives_of(slots, grows=grows)
    other = lives_of(slots, first_number=1, grows=grows)
    mine = done(lives, outcomes)
    assert not {write.topic for write in mine} & {write.topic for write in done(other, outcomes)}
    numbers: dict[str, int] = {}
    alive: Counter[str] = Counter()
    partition_counts: dict[str, int] = {}
    doubtful: set[str] = set()
    for write, outcome in zip(mine, outcomes, strict=True):
        is_known = write.topic not in doubtful
        assert write.f is MetadataF.DELETE or is_known
        assert not is_known or (write.f is MetadataF.CREATE) == (not alive[write.topic])
        if outcome is Outcome.INFO:
            doubtful.add(write.topic)
        elif outcome is Outcome.OK and write.f is MetadataF.DELETE:
            doubtful.discard(write.topic)
        assert len(doubtful | {name for name, lives_on in alive.items() if lives_on}) <= slots
        assert 1 <= write.replication_factor <= 3
        if write.config_value is not None:
            assert write.config_value > numbers.get(write.topic, -1)
            numbers[write.topic] = write.config_value
        if write.f is MetadataF.GROW:
            assert write.partition_count == partition_counts[write.topic] + 1
        if outcome is Outcome.OK and write.f in (MetadataF.CREATE, MetadataF.DELETE):
            alive[write.topic] = write.f is MetadataF.CREATE
        if outcome is Outcome.OK and write.f in (MetadataF.CREATE, MetadataF.GROW):
            partition_counts[write.topic] = write.partition_count
    assert len(lives.names) <= 2 * slots
