"""D5 to D8: readers go on to the next record, and a producer's records stand as it sent them."""

from judging import allowed, never

LOG = """
    p1 send t-0 v1 -> ok @0
    p1 send t-0 v2 -> ok @1
    p1 send t-0 v3 -> ok @2
    p1 send t-0 v4 -> ok @4
    c0 poll -> t-0 [v1@0 v2@1 v3@2 v4@4]
    """


def test_a_consumer_that_goes_on_is_fine_whoever_else_reads() -> None:
    assert not never(
        LOG
        + """
        c1 poll -> t-0 [v1@0]
        c2 poll -> t-0 [v1@0 v2@1]
        c1 poll -> nothing
        c1 poll -> t-0 [v2@1 v3@2]
        c1 poll -> t-0 [v4@4]
        """
    )


def test_a_step_back_from_one_poll_to_the_next_is_nonmonotonic() -> None:
    back = LOG + "c1 poll -> t-0 [v1@0 v2@1]\nc1 poll -> t-0 [v{0}@{1}]"
    assert never(back.format(1, 0)) == {"nonmonotonic-poll": [(2, 1)]}
    assert never(back.format(2, 1)) == {"nonmonotonic-poll": [(2, 2)]}
    assert not never(back.format(3, 2))


def test_a_step_over_a_record_from_one_poll_to_the_next_skips_it() -> None:
    assert never(LOG + "c1 poll -> t-0 [v1@0]\nc1 poll -> t-0 [v3@2]") == {"skipped-poll": [(1, 3)]}


def test_a_new_assignment_forgets_where_the_old_one_stood() -> None:
    anew = LOG + "c1 poll -> t-0 [v1@0 v2@1]\nc1 poll -> t-0 s1 [v1@0]"
    assert not never(anew)
    assert not allowed(anew)


def test_a_step_across_a_rebalance_is_reported_and_allowed() -> None:
    back = LOG + "c1 poll -> t-0 [v1@0 v2@1]\nc1 poll -> t-0 s1 [v1@0]"
    over = LOG + "c1 poll -> t-0 [v1@0]\nc1 poll -> t-0 s1 [v3@2]"
    assert not never(back, consume="subscribe")
    assert allowed(back, consume="subscribe") == {"nonmonotonic-poll": [(2, 1)]}
    assert allowed(over, consume="both") == {"skipped-poll": [(1, 3)]}


def test_within_a_session_a_subscriber_may_not_go_back_either() -> None:
    back = LOG + "c1 poll -> t-0 s3 [v1@0 v2@1]\nc1 poll -> t-0 s3 [v1@0]"
    assert never(back, consume="subscribe") == {"nonmonotonic-poll": [(2, 1)]}


def test_a_step_over_a_crashed_poll_proves_nothing() -> None:
    assert not never(
        LOG
        + """
        c1 poll -> t-0 [v1@0]
        c1 poll -> info t-1 []
        c1 poll -> t-0 [v3@2]
        """
    )


def test_a_poll_whose_records_are_out_of_order_is_found_by_itself() -> None:
    assert never(LOG + "c1 poll -> t-0 [v1@0 v3@2 v2@1]") == {
        "internal-skipped-poll": [(1, 3)],
        "internal-nonmonotonic-poll": [(3, 2)],
    }


def test_a_final_read_that_leaves_a_record_out_is_found_by_itself() -> None:
    found = never(LOG + "r1 final t-0 -> [v1@0 v2@1 v4@4]")
    assert found["internal-skipped-poll"] == [(2, 4)]


def test_a_poll_that_saw_a_rebalance_is_not_compared_across_it() -> None:
    assert not never(LOG + "c1 poll -> t-0 [v1@0 v2@1] t-0 s1 [v1@0 v2@1]")


def test_a_crashed_poll_is_not_compared() -> None:
    assert not never(LOG + "c1 poll -> info t-0 [v1@0 v3@2]")


def test_a_final_read_is_not_compared_with_the_polls_of_its_process() -> None:
    assert not never(LOG + "c0 final t-0 -> [v1@0 v2@1 v3@2 v4@4]")


def test_a_later_send_at_an_earlier_position_is_nonmonotonic_if_idempotent() -> None:
    back = "p1 send t-0 v1 -> ok @5\n{} send t-0 v2 -> {}"
    assert never(back.format("p1", "ok @4")) == {"nonmonotonic-send": [(1, 2)]}
    assert allowed(back.format("p1", "ok @4"), idempotent=False) == {"nonmonotonic-send": [(1, 2)]}
    assert not never(back.format("p1", "ok @6"))
    assert not never(back.format("p2", "ok @4"))
    assert not never(back.format("p1", "info"))


def test_pipelined_sends_are_ordered_by_their_calls_and_not_by_their_acknowledgements() -> None:
    assert not never(
        """
        p1 send t-0 v1 -> ok @0 in 0..90
        p1 send t-0 v2 -> ok @1 in 0..80
        """
    )
