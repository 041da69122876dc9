"""Sessions against a slow, obvious model: a log of what the consumer owned, event by event."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fencepost.workloads.clients.sessions import ConsumerSessions

KEY_COUNT = 3


def sessions_of(
    sessions: ConsumerSessions, *keys: int, offsets: Sequence[int] | None = None
) -> list[int]:
    """The sessions of a poll's records; unless told otherwise, no two have consecutive offsets."""
    apart = range(0, 10 * len(keys), 10) if offsets is None else offsets
    found: list[int] = sessions.end_poll(
        np.array(keys, dtype=np.int32), np.array(apart, dtype=np.int64)
    ).tolist()
    return found


def test_a_key_that_is_owned_throughout_stays_in_one_session() -> None:
    sessions = ConsumerSessions(2)
    sessions.gain([0, 1])
    for _ in range(3):
        sessions.begin_poll()
        assert sessions_of(sessions, 0, 1, 0) == [0, 0, 0]


def test_a_key_lost_and_regained_starts_a_new_session() -> None:
    sessions = ConsumerSessions(2)
    sessions.gain([0, 1])
    sessions.begin_poll()
    sessions.lose([0])
    assert sessions_of(sessions, 0, 1) == [0, 0]
    sessions.begin_poll()
    sessions.gain([0])
    assert sessions_of(sessions, 0, 1) == [1, 0]
    assert sessions.owned == {0, 1}


def test_a_new_assign_starts_a_new_session_of_every_key() -> None:
    sessions = ConsumerSessions(2)
    sessions.gain([0, 1])
    sessions.gain([0, 1])
    sessions.begin_poll()
    assert sessions_of(sessions, 0, 1) == [1, 1]


def test_no_order_is_claimed_of_a_key_that_was_lost_and_regained_within_one_poll() -> None:
    sessions = ConsumerSessions(2)
    sessions.gain([0, 1])
    sessions.begin_poll()
    sessions.lose([0, 1])
    sessions.gain([0])
    before = sessions_of(sessions, 0, 1, 0, 0)
    assert len({before[0], before[2], before[3]}) == 3
    assert before[1] == 0
    sessions.begin_poll()
    (after,) = sessions_of(sessions, 0)
    assert after not in before


def test_after_a_poll_that_ended_badly_order_starts_anew() -> None:
    sessions = ConsumerSessions(1)
    sessions.gain([0])
    sessions.begin_poll()
    bad = sessions_of(sessions, 0, 0)
    sessions.sever()
    sessions.begin_poll()
    assert sessions_of(sessions, 0) == [bad[0] + 1]


def test_of_such_a_key_consecutive_records_share_a_session_all_the_same() -> None:
    sessions = ConsumerSessions(1)
    sessions.gain([0])
    sessions.begin_poll()
    sessions.lose([0])
    sessions.gain([0])
    found = sessions_of(sessions, *[0] * 7, offsets=[8, 9, 10, 5, 6, 8, 9])
    assert found == [1, 1, 1, 2, 2, 3, 3]
    sessions.begin_poll()
    assert sessions_of(sessions, 0) == [4]


@dataclass
class Ownership:
    """Which ownerships of a key a poll's records may belong to, counted without cleverness."""

    number: int = -1
    owned: bool = False
    possible: set[int] = field(default_factory=set)

    def begin_poll(self) -> None:
        self.possible = {self.number} if self.owned else set()

    def gain(self) -> None:
        self.number += 1
        self.owned = True
        self.possible.add(self.number)


EVENTS = st.lists(
    st.tuples(st.sampled_from(["gain", "lose"]), st.integers(0, KEY_COUNT - 1)), max_size=6
)
POLLS = st.lists(
    st.tuples(EVENTS, st.lists(st.integers(0, KEY_COUNT - 1), max_size=5)), max_size=12
)


@given(polls=POLLS)
def test_two_records_share_a_session_only_if_they_surely_share_an_ownership(
    polls: Sequence[tuple[list[tuple[str, int]], list[int]]],
) -> None:
    sessions = ConsumerSessions(KEY_COUNT)
    model = [Ownership() for _ in range(KEY_COUNT)]
    ownership_of: dict[tuple[int, int], set[int]] = {}
    last_session = [-1] * KEY_COUNT
    for events, wanted in polls:
        sessions.begin_poll()
        for ownership in model:
            ownership.begin_poll()
        for event, key in events:
            if event == "gain":
                sessions.gain([key])
                model[key].gain()
            else:
                sessions.lose([key])
                model[key].owned = False
        # A key that was never held during the poll returns nothing.
        keys = [key for key in wanted if model[key].possible]
        for key, session in zip(keys, sessions_of(sessions, *keys), strict=True):
            possible = model[key].possible
            shared = ownership_of.setdefault((key, session), possible)
            sure = len(possible) == 1 and shared == possible
            assert sure or session > last_session[key], "an unsure record shares a session"
            assert session >= last_session[key]
            last_session[key] = session
