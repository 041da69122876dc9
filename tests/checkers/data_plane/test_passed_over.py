"""Readers that go on from each other: back is legal, ahead of all that they were returned never."""

import pytest
from histories import history
from judging import found_in
from proving import assert_proof

from fencepost.checkers.anomaly import Found, anomalies_of
from fencepost.checkers.data_plane.passed_over import NAME
from fencepost.history.manifest import Readers

SENT = "\n".join(f"p1 send t-0 v{one} -> ok @{one - 1}" for one in range(1, 8))
ALL = "[v1@0 v2@1 v3@2 v4@3 v5@4 v6@5 v7@6]"
READ = f"\n r1 final t-0 -> {ALL}"
AT_FIRST = "\n c1 poll -> t-0 [v1@0 v2@1]"
GROUP = Readers(name="the group", processes=(1, 2), stride=9, poll_max=1)
"""c1 and c2, where they are the second and the third process to appear."""


def judged(polls: str, *, final: str = READ, readers: tuple[Readers, ...] = (GROUP,)) -> Found:
    # Names in the order of their numbers.
    named = f"{SENT}\n c1 poll -> nothing\n c2 poll -> nothing\n"
    (found,) = found_in(
        history(named + polls + final), (NAME,), consume="subscribe", readers=readers
    )
    return found


def counts(found: Found) -> tuple[int, int, int]:
    return found.never_count, found.allowed_count, found.case_count


def test_a_record_that_a_group_passed_over_for_good_is_found() -> None:
    found = judged(f"{AT_FIRST}\n c2 poll -> t-0 [v5@4 v6@5]")
    assert counts(found) == (2, 0, 5)
    first, second = anomalies_of(found.table)
    rule = "and no poll of {readers} ever did"
    assert_proof(first.proof, rule, readers="the group", value=3, offset=2, reach=5)
    assert_proof(second.proof, rule, value=4, offset=3)


def test_one_member_alone_passes_over_as_well() -> None:
    assert counts(judged(f"{AT_FIRST}\n c1 poll -> t-0 s1 [v5@4 v6@5]")) == (2, 0, 5)
    # And before the first record that was polled at all.
    assert counts(judged("c1 poll -> t-0 [v3@2 v4@3]")) == (2, 0, 3)


def test_a_consumer_that_assigns_itself_its_keys_goes_on_from_itself_alone() -> None:
    alone = [Readers(name=f"c{one}", processes=(one,), stride=9, poll_max=1) for one in (1, 2)]
    polls = f"c1 poll -> t-0 {ALL}\n c2 poll -> t-0 [v1@0]\n c2 poll -> t-0 s1 [v3@2]"
    assert counts(judged(polls, readers=tuple(alone))) == (1, 0, 6 + 2)


@pytest.mark.parametrize(
    "polls",
    [
        # Back, by one that had not heard that the key was another's.
        f"{AT_FIRST}\n c2 poll -> t-0 [v1@0 v2@1 v3@2 v4@3]\n c1 poll -> t-0 [v3@2]",
        # Ahead, and back later.
        f"{AT_FIRST}\n c2 poll -> t-0 [v5@4]\n c1 poll -> t-0 s1 [v3@2 v4@3]",
        # The rest was not read before the run ended.
        AT_FIRST,
        # A poll that crashed, but told what it had been given.
        f"{AT_FIRST}\n c1 poll -> info t-0 [v3@2 v4@3]\n c2 poll -> t-0 [v5@4]",
        # A later client in the place of c2: its number is that of c2 and the stride.
        f"{AT_FIRST}\n" + "\n".join(f"x{n} poll -> nothing" for n in range(3, 11)) + "\n"
        "x11 poll -> t-0 [v3@2 v4@3]\n c2 poll -> t-0 [v5@4]",
    ],
)
def test_what_some_member_was_returned_is_not_passed_over(polls: str) -> None:
    found = judged(polls)
    assert counts(found)[:2] == (0, 0)
    assert found.case_count


def test_what_a_crashed_poll_may_have_taken_is_allowed() -> None:
    crashed = f"{AT_FIRST}\n c1 poll -> info t-0 []\n c2 poll -> t-0 [v5@4 v6@5]"
    assert counts(judged(crashed)) == (0, 2, 5)
    # It cannot have taken more than a poll does, markers of transactions included.
    more = crashed.replace("[v5@4 v6@5]", "[v6@5 v7@6]")
    assert counts(judged(more)) == (1, 2, 6)
    # Two take twice as much.
    twice = more.replace("c2 poll", "c2 poll -> info t-0 []\n c2 poll", 1)
    assert counts(judged(twice)) == (0, 3, 6)
    # Nor what others had passed over before it was called.
    late = f"{AT_FIRST}\n c2 poll -> t-0 [v5@4 v6@5]\n c1 poll -> info t-0 []"
    assert counts(judged(late)) == (2, 0, 5)
    # Offsets of another group do not count.
    other = crashed.replace("c1 poll -> info", "x poll -> info")
    assert counts(judged(other)) == (2, 0, 5)


def test_a_record_that_no_complete_final_read_returned_was_not_there_for_sure() -> None:
    ahead = f"{AT_FIRST}\n c2 poll -> t-0 [v5@4 v6@5]"
    assert counts(judged(ahead, final="")) == (0, 0, 0)
    assert counts(judged(ahead, final=f"\n r1 final t-0 -> info {ALL}")) == (0, 0, 0)
    # Markers of transactions, and what was deleted.
    assert counts(judged(ahead, final="\n r1 final t-0 -> [v5@4 v6@5 v7@6]")) == (0, 0, 1)
    assert counts(judged(ahead, readers=())) == (0, 0, 0)
