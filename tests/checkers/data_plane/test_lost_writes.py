"""D1: what must have happened, and stands at or below what was read, was returned."""

import numpy as np
from judging import doubts, log_of, never

from fencepost.checkers.anomaly import anomalies_of
from fencepost.checkers.data_plane.lost_writes import lost_writes


def test_an_acknowledged_value_below_what_was_read_that_no_read_returned_is_lost() -> None:
    assert never(
        """
        p1 send t-0 v1 -> ok @0
        p1 send t-0 v2 -> ok @1
        c1 poll -> t-0 [v2@1]
        """
    ) == {"lost-write": [(1,)]}


def test_a_value_that_any_ok_read_returned_is_not_lost() -> None:
    assert not never(
        """
        p1 send t-0 v1 -> ok @0
        p1 send t-0 v2 -> ok @1
        c1 poll -> t-0 [v2@1]
        c2 poll -> t-0 [v1@0]
        """
    )


def test_a_final_read_counts_as_an_ok_read() -> None:
    returned = """
        p1 send t-0 v1 -> ok @0
        p1 send t-0 v2 -> ok @1
        r1 final t-0 -> [v1@0 v2@1]
        """
    assert not never(returned)
    assert "lost-write" in never(returned.replace("v1@0 ", ""))


def test_a_crashed_send_that_no_read_returned_is_not_lost() -> None:
    assert not never(
        """
        p1 send t-0 v1 -> info
        p1 send t-0 v2 -> ok @1
        c1 poll -> t-0 [v2@1]
        """
    )


def test_a_crashed_send_with_a_value_that_was_seen_must_have_happened_as_a_whole() -> None:
    log = log_of(
        """
        p1 send t-0 v1 -> info
        p1 send t-0 v2 -> info
        c1 poll -> t-0 [v1@0]
        """
    )
    assert log.happened.tolist() == [True, False]


def test_a_crashed_poll_says_where_a_value_stands_and_does_not_return_it() -> None:
    assert never(
        """
        p1 send t-0 v1 -> ok
        p1 send t-0 v2 -> ok @1
        c2 poll -> info t-0 [v1@0]
        c1 poll -> t-0 [v2@1]
        """
    ) == {"lost-write": [(1,)]}


def test_a_value_above_the_bound_is_not_a_lost_write() -> None:
    assert not never(
        """
        p1 send t-0 v1 -> ok @0
        p1 send t-0 v2 -> ok @1
        c1 poll -> t-0 [v1@0]
        """
    )


def test_offsets_without_records_are_legal() -> None:
    assert not never(
        """
        p1 send t-0 v1 -> ok @3
        p1 send t-0 v2 -> ok @9
        c1 poll -> t-0 [v1@3 v2@9]
        r1 final t-0 -> [v1@3 v2@9]
        """
    )


def test_a_value_that_no_read_went_over_is_a_doubt_without_a_final_read() -> None:
    resumed = """
        p1 send t-0 v1 -> ok @0
        p1 send t-0 v2 -> ok @1
        c1 poll -> t-0 s1 [v2@1]
        """
    assert not never(resumed)
    assert "lost-write" in doubts(resumed)


def test_a_complete_final_read_turns_the_doubt_into_a_loss() -> None:
    resumed = """
        p1 send t-0 v1 -> ok @0
        p1 send t-0 v2 -> ok @1
        c1 poll -> t-0 s1 [v2@1]
        r1 final t-0 -> []
        """
    assert never(resumed)["lost-write"] == [(1,), (2,)]


def test_a_process_that_subscribed_may_start_anywhere() -> None:
    late = """
        p1 send t-0 v1 -> ok @0
        p1 send t-0 v2 -> ok @1
        c1 poll -> t-0 [v2@1]
        """
    assert not never(late, consume="subscribe")
    assert "lost-write" in doubts(late, consume="subscribe")


def test_a_proof_names_the_send_the_reader_and_both_offsets() -> None:
    found = lost_writes(
        log_of(
            """
            p1 send t-0 v1 -> ok @0
            p1 send t-0 v2 -> ok @1
            c1 poll -> t-0 [v2@1]
            """
        )
    )
    (one,) = anomalies_of(found.table)
    assert (one.proof.fact("operation"), one.proof.fact("reading")) == (0, 2)
    assert (one.proof.fact("value"), one.proof.fact("offset"), one.proof.fact("bound")) == (1, 0, 1)


def test_the_bound_is_the_highest_offset_that_an_ok_read_returned() -> None:
    log = log_of(
        """
        p1 send t-0 v1 -> ok @70
        p1 send t-0 v2 -> ok @90
        c1 poll -> t-0 [v1@70]
        c2 poll -> info t-0 [v2@90]
        """
    )
    assert log.bound == 70
    assert np.array_equal(log.log.offset, [70, 90])


def test_a_value_that_was_read_is_lost_by_the_first_final_read_that_had_to_return_it() -> None:
    late = """
        p1 send t-0 v1 -> ok @0          in 0..40
        c1 poll -> t-0 [v1@0]            in 5..10
        r1 final t-0 -> []               in 20..30
        r1 final t-0 -> []               in {}..60
        """
    assert never(late.format(50)) == {"lost-write": [(1,)], "vanished": [(1,)]}
    assert never(late.format(40)) == {"vanished": [(1,)]}
