"""What could not be read when a run was recorded."""

from fencepost.harness.run.record import unread
from fencepost.harness.run.recording import first_few


def test_what_cannot_be_read_of_the_disks_is_one_shortfall() -> None:
    assert unread(()) == ()
    words = "not all that lies on the disks could be read: broker-1: t-0: torn"
    assert unread(["broker-1: t-0: torn"]) == (words,)
    assert unread(["broker-1: t-0: torn", "a", "b"]) == (f"{words} and 2 more",)


def test_of_thousands_of_keys_that_were_not_read_the_first_are_named() -> None:
    keys = [f"k-{number}" for number in range(2010)]
    assert first_few(keys) == f"{', '.join(keys[:10])} and 2000 more"
    assert first_few(keys[:2]) == "k-0, k-1"
