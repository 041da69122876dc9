"""D13 and D18: what a complete final read has to return."""

from judging import allowed, doubts, never


def test_an_acknowledged_value_that_the_final_read_did_not_return_is_unseen() -> None:
    assert never(
        """
        p1 send t-0 v1 -> ok @0
        p1 send t-0 v2 -> ok @1
        r1 final t-0 -> [v1@0]
        """
    ) == {"unseen": [(2,)]}


def test_a_final_read_of_an_empty_key_leaves_every_acknowledged_value_unseen() -> None:
    assert never(
        """
        p1 send t-0 v1 -> ok @0
        p1 send t-0 v2 -> ok @1
        r1 final t-0 -> []
        """
    ) == {"unseen": [(1,), (2,)]}


def test_a_value_that_the_final_read_returned_is_seen() -> None:
    assert not never("p1 send t-0 v1 -> ok @0\nr1 final t-0 -> [v1@0]")


def test_a_crashed_send_owes_the_final_read_nothing() -> None:
    assert not never("p1 send t-0 v1 -> info\nr1 final t-0 -> []")


def test_a_value_acknowledged_without_an_offset_is_unseen_when_no_read_returned_it() -> None:
    assert never("p1 send t-0 v1 -> ok\nr1 final t-0 -> []") == {"unseen": [(1,)]}


def test_a_value_acknowledged_while_or_after_the_final_read_was_called_is_not_required() -> None:
    late = "p1 send t-0 v1 -> ok @0 in 0..{}\nr1 final t-0 -> [] in 20..30"
    assert never(late.format(19)) == {"unseen": [(1,)]}
    assert not never(late.format(20))
    assert not never(late.format(25))


def test_a_key_without_a_complete_final_read_is_in_doubt() -> None:
    partial = "p1 send t-0 v1 -> ok @0\nr1 final t-0 -> info []"
    assert not never(partial)
    assert doubts(partial) == {"unseen"}


def test_a_key_without_acknowledged_sends_needs_no_final_read() -> None:
    assert not doubts("p1 send t-0 v1 -> info")


def test_a_value_that_was_read_and_is_not_in_the_final_read_has_vanished() -> None:
    cut = """
        p1 send t-0 v1 -> ok @0
        p1 send t-0 v2 -> ok @1
        c1 poll -> t-0 [v1@0 v2@1]
        r1 final t-0 -> [v1@0]
        """
    assert never(cut) == {"vanished": [(2,)], "lost-write": [(2,)]}
    assert never(cut.replace("v2 -> ok @1", "v2 -> info")) == {"vanished": [(2,)]}
    assert not never(cut.replace("-> [v1@0]", "-> [v1@0 v2@1]"))


def test_a_key_that_was_read_and_is_empty_in_the_end_has_vanished() -> None:
    assert never(
        """
        p1 send t-0 v1 -> ok @0
        c1 poll -> t-0 [v1@0]
        r1 final t-0 -> []
        """
    ) == {"vanished": [(1,)], "lost-write": [(1,)]}


def test_a_value_that_only_a_crashed_poll_saw_cannot_vanish() -> None:
    assert not never(
        """
        p1 send t-0 v1 -> info
        c1 poll -> info t-0 [v1@0]
        r1 final t-0 -> []
        """
    )


def test_a_read_that_was_concurrent_with_the_final_read_proves_nothing() -> None:
    assert not never(
        """
        p1 send t-0 v1 -> info
        c1 poll -> t-0 [v1@0] in 10..20
        r1 final t-0 -> [] in 20..30
        """
    )


def test_nothing_of_this_is_ever_allowed() -> None:
    assert not allowed("p1 send t-0 v1 -> ok @0\nr1 final t-0 -> []", idempotent=False)
