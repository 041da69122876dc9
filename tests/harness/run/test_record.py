"""What could not be read when a run was recorded."""

from harness.run.record import unread


def test_what_cannot_be_read_of_the_disks_is_one_shortfall() -> None:
    assert unread(()) == ()
    words = "not all that lies on the disks could be read: broker-1: t-0: torn"
    assert unread(["broker-1: t-0: torn"]) == (words,)
    assert unread(["broker-1: t-0: torn", "a", "b"]) == (f"{words} and 2 more",)
