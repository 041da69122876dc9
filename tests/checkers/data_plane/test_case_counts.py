"""The cases of the data plane: of the smallest bad history, the nearest good one, and of none."""

import pytest
from histories import history
from judging import found_in

from fencepost.checkers.anomaly import Found
from fencepost.checkers.catalogue import KEY_CHECKS
from fencepost.checkers.data_plane.key_assumptions import KEY_ASSUMPTIONS
from fencepost.history.manifest import Readers

SENT = """
    p1 send t-0 v1 -> ok @0
    p1 send t-0 v2 -> ok @1
    p1 send t-0 v3 -> ok @2
    """
READ = f"{SENT}\n r1 final t-0 -> [v1@0 v2@1 v3@2]"
"""What the good histories add to or take from."""
ALL = "[v1@0 v2@1 v3@2]"
GROUP = Readers(name="the group", processes=(1,), stride=9, poll_max=1)
"""c1, where it is the second process to appear."""

CASES: dict[str, tuple[str, str, int, str]] = {
    # check: a bad history, a good one, the cases in both, and a history that has none
    "unique-values": (
        "p1 send t-0 v1 -> ok @0\n p2 send t-0 v1 -> ok @1",
        "p1 send t-0 v1 -> ok @0\n p2 send t-0 v2 -> ok @1",
        2,
        "r1 final t-0 -> [v1@0]",
    ),
    "sent-values": (f"{SENT}\n c1 poll -> t-0 [v9@3]", f"{SENT}\n c1 poll -> t-0 [v1@0]", 1, SENT),
    "lost-write": (
        f"{SENT}\n c1 poll -> t-0 [v1@0 v3@2]",
        f"{SENT}\n c1 poll -> t-0 [v1@0 v2@1 v3@2]",
        3,
        # Above the highest offset that was read, nothing is lost yet.
        SENT,
    ),
    "aborted-read": (
        "p1 send t-0 v1 -> fail\n c1 poll -> t-0 [v1@0]",
        "p1 send t-0 v1 -> fail\n c1 poll -> nothing",
        1,
        READ,
    ),
    "inconsistent-offset": (
        "p1 send t-0 v1 -> ok @0\n p1 send t-0 v2 -> info\n c1 poll -> t-0 [v2@0]",
        "p1 send t-0 v1 -> ok @0\n p1 send t-0 v2 -> info\n c1 poll -> t-0 [v1@0 v2@1]",
        1,
        SENT,
    ),
    "duplicate": (
        "p1 send t-0 v1 -> ok @0\n c1 poll -> t-0 [v1@0 v1@1]",
        "p1 send t-0 v1 -> ok @0\n c1 poll -> t-0 [v1@0]",
        1,
        # The producer gave up on another send meanwhile, so it may have sent this one again.
        "p1 send t-0 v1 -> ok @0 in 0..20\n p1 send t-0 v2 -> info in 10..15",
    ),
    "nonmonotonic-poll": (
        f"{SENT}\n c1 poll -> t-0 [v1@0 v2@1]\n c1 poll -> t-0 [v2@1]",
        f"{SENT}\n c1 poll -> t-0 [v1@0 v2@1]\n c1 poll -> t-0 [v3@2]",
        1,
        # Another session of the consumer is not bound to where the last one stood.
        f"{SENT}\n c1 poll -> t-0 [v1@0 v2@1]\n c1 poll -> t-0 s1 [v3@2]",
    ),
    "skipped-poll": (
        f"{SENT}\n c1 poll -> t-0 [v1@0]\n c1 poll -> t-0 [v3@2]",
        f"{SENT}\n c1 poll -> t-0 [v1@0 v2@1]\n c1 poll -> t-0 [v3@2]",
        1,
        # What the crashed poll in between consumed is not known.
        f"{SENT}\n c1 poll -> t-0 [v1@0]\n c1 poll -> info t-0 []\n c1 poll -> t-0 [v3@2]",
    ),
    "internal-nonmonotonic-poll": (
        f"{SENT}\n c1 poll -> t-0 [v2@1 v1@0]",
        f"{SENT}\n c1 poll -> t-0 [v1@0 v2@1]",
        1,
        f"{SENT}\n c1 poll -> t-0 [v1@0]\n c1 poll -> t-0 [v2@1]",
    ),
    "internal-skipped-poll": (
        f"{SENT}\n c1 poll -> t-0 [v1@0 v3@2]",
        f"{SENT}\n c1 poll -> t-0 [v1@0 v2@1]",
        1,
        f"{SENT}\n c1 poll -> t-0 [v1]\n c1 poll -> t-0 [v2 v3]",
    ),
    "nonmonotonic-send": (
        "p1 send t-0 v1 -> ok @1\n p1 send t-0 v2 -> ok @0",
        "p1 send t-0 v1 -> ok @0\n p1 send t-0 v2 -> ok @1",
        1,
        "p1 send t-0 v1 -> ok @0\n p2 send t-0 v2 -> ok @1\n p1 send t-0 v3 -> info",
    ),
    "unseen": (f"{SENT}\n r1 final t-0 -> [v1@0 v2@1]", READ, 3, f"{SENT}\n c1 poll -> t-0 [v1@0]"),
    "passed-over": (
        f"{SENT}\n c1 poll -> t-0 [v1@0]\n c1 poll -> t-0 s1 [v3@2]\n r1 final t-0 -> {ALL}",
        f"{SENT}\n c1 poll -> t-0 [v1@0]\n c1 poll -> t-0 s1 [v2@1 v3@2]\n r1 final t-0 -> {ALL}",
        2,
        # No complete final read tells what was there.
        f"{SENT}\n c1 poll -> t-0 [v1@0]\n c1 poll -> t-0 s1 [v3@2]",
    ),
    "vanished": (
        "p1 send t-0 v1 -> info\n c1 poll -> t-0 [v1@0]\n r1 final t-0 -> []",
        "p1 send t-0 v1 -> info\n c1 poll -> t-0 [v1@0]\n r1 final t-0 -> [v1@0]",
        1,
        # Only the final read itself returned anything.
        READ,
    ),
}


def _found(check: str, text: str) -> Found:
    (found,) = found_in(history(text), (check,), readers=(GROUP,))
    return found


def test_every_check_of_the_data_plane_is_in_the_table() -> None:
    assert set(CASES) == set(KEY_ASSUMPTIONS) | set(KEY_CHECKS)


@pytest.mark.parametrize("check", CASES)
def test_the_bad_history_and_the_nearest_good_one_have_their_cases(check: str) -> None:
    bad, good, cases, _ = CASES[check]
    assert (_found(check, bad).never_count > 0, _found(check, bad).case_count) == (True, cases)
    assert (_found(check, good).never_count, _found(check, good).case_count) == (0, cases)


@pytest.mark.parametrize("check", CASES)
def test_a_history_in_which_nothing_can_go_wrong_has_no_case(check: str) -> None:
    *_, text = CASES[check]
    found = _found(check, text)
    assert (found.never_count, found.case_count) == (0, 0)


def test_values_under_way_when_their_producer_gave_up_are_no_cases_of_duplicate() -> None:
    text = """
        p1 send t-0 v1 -> ok @0  in 0..20
        p1 send t-0 v2 -> info in 10..15
        p2 send t-0 v3 -> ok @2
        c1 poll -> t-0 [v1@0 v2@1 v3@2]
        """
    assert _found("duplicate", text).case_count == 1
    (found,) = found_in(history(text), ("duplicate",), idempotent=False)
    assert found.case_count == 3


def test_a_record_of_unknown_place_is_a_case_of_lost_write_once_a_final_read_looked_for_it() -> (
    None
):
    text = "p1 send t-0 v1 -> ok\n c1 poll -> t-0 [v1@0]"
    assert _found("lost-write", text).case_count == 0
    assert _found("lost-write", f"{text}\n r1 final t-0 -> []").case_count == 1
