"""D2, D3, D4: which value stands at which offset, and whose it is; and the assumptions behind."""

from judging import allowed, never


def test_a_failed_send_that_was_read_is_an_aborted_read() -> None:
    read = "p1 send t-0 v1 -> {}\nc1 poll -> {} t-0 [v1@0]"
    assert never(read.format("fail", "ok")) == {"aborted-read": [(1,)]}
    assert not never(read.format("info", "ok"))
    assert not never(read.format("ok @0", "ok"))
    assert not never(read.format("fail", "info"))


def test_two_values_at_one_offset_are_inconsistent() -> None:
    assert never(
        """
        p1 send t-0 v1 -> info
        p1 send t-0 v2 -> info
        c1 poll -> t-0 [v1@0]
        c2 poll -> t-0 [v2@0]
        """
    ) == {"inconsistent-offset": [(1, 2)]}


def test_an_acknowledgement_with_an_offset_counts_like_a_read() -> None:
    read = "p1 send t-0 v1 -> ok @0\np1 send t-0 v2 -> info\nc1 poll -> {} t-0 [v2@{}]"
    assert never(read.format("ok", 0))["inconsistent-offset"] == [(1, 2)]
    assert "inconsistent-offset" not in never(read.format("ok", 1))


def test_a_crashed_poll_must_see_safe_data_too() -> None:
    assert never(
        """
        p1 send t-0 v1 -> ok @0
        p1 send t-0 v2 -> info
        c1 poll -> info t-0 [v2@0]
        """
    ) == {"inconsistent-offset": [(1, 2)]}


def test_a_value_at_two_offsets_is_a_duplicate_which_only_idempotence_forbids() -> None:
    twice = """
        p1 send t-0 v1 -> ok @0
        c1 poll -> t-0 [v1@0 v1@1]
        r1 final t-0 -> [v1@0 v1@1]
        """
    assert never(twice) == {"duplicate": [(1,)]}
    assert not never(twice, idempotent=False)
    assert allowed(twice, idempotent=False) == {"duplicate": [(1,)]}
    assert not never(twice.replace(" v1@1", ""))


def test_a_crashed_send_that_stands_twice_is_a_duplicate_too() -> None:
    assert "duplicate" in never("p1 send t-0 v1 -> info\nc1 poll -> t-0 [v1@0 v1@1]")


def test_a_value_that_was_never_sent_breaks_an_assumption() -> None:
    stray = "p1 send t-0 v1 -> {}\nc1 poll -> {} t-0 [v1@0 v7@1]"
    assert never(stray.format("ok @0", "ok")) == {"sent-values": [(7,)]}
    assert never(stray.format("ok @0", "info")) == {"sent-values": [(7,)]}
    assert not never(stray.format("ok @0", "ok").replace(" v7@1", ""))


def test_a_value_that_was_sent_to_another_key_was_not_sent_to_this_one() -> None:
    assert never(
        """
        p1 send t-1 v1 -> ok @0
        c1 poll -> t-0 [v1@0]
        """
    )["sent-values"] == [(1,)]


def test_two_sends_of_one_value_break_an_assumption() -> None:
    assert never("p1 send t-0 v1 -> info\np2 send t-0 v1 -> info") == {"unique-values": [(1,)]}
    assert not never("p1 send t-0 v1 -> info\np2 send t-1 v1 -> info")


def test_a_producer_that_gave_up_on_a_send_may_send_others_twice() -> None:
    gave_up = """
        p1 send t-0 v1 -> ok @0  in 0..30
        p1 send t-0 v2 -> info   in 15..19
        c1 poll -> t-0 [v1@0 v1@1]
        r1 final t-0 -> [v1@0 v1@1]
        """
    assert not never(gave_up)
    assert allowed(gave_up) == {"duplicate": [(1,)]}
    # A client does not send again a record that had been acknowledged.
    assert never(gave_up.replace("in 0..30", "in 0..18")) == {"duplicate": [(1,)]}
    # Another process's time-out excuses nothing, and a crash is no decision to go on.
    assert never(gave_up.replace("p1 send t-0 v2", "p2 send t-0 v2")) == {"duplicate": [(1,)]}
    assert never(gave_up.replace("in 15..19", "in 15..open")) == {"duplicate": [(1,)]}
