"""The time at which a node next has something to do that no message makes it do.

A shell gives its node ticks (TICK), at which all deadlines are looked at. Mostly there is nothing
to be seen, and a simulator would spend a third of its events on that. So whoever sets a deadline
says so here, and a shell may leave out the ticks before the earliest one.

A deadline that moves away need not be taken back: the tick finds nothing due, and every part then
says anew what it waits for. A tick before its time must change nothing, so that a shell may give
as many as it likes; `World(witnessed=True)` does, and fails a node that acts at one.
"""

from typing import Final

NEVER_NS: Final = 1 << 62


class Alarm:
    """A node's: the earliest of what its parts wait for, on its own clock."""

    __slots__ = ("due_ns",)

    def __init__(self) -> None:
        self.due_ns = 0
        """Until the first tick has asked all parts: at once."""

    def by(self, at_ns: int) -> None:
        """Demand a tick at this time, or soon after."""
        if at_ns < self.due_ns:  # noqa: PLR1730  # the call of min is what it costs
            self.due_ns = at_ns

    def reset(self) -> None:
        """A tick: all parts say anew what they wait for."""
        self.due_ns = NEVER_NS
