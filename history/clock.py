"""The one clock of a run: nanoseconds since its start.

CLOCK_MONOTONIC is one for all processes of a machine and never steps, so that times taken by the
harness and by every client compare directly. It says nothing across a reboot or between machines.
"""

import time
from dataclasses import dataclass
from typing import Final, Protocol

EVERY_NODE: Final = ""
"""In the place of a node: the clock of all of them was wrong, that of their machine."""


class TellsTime(Protocol):
    """The clock that a journal needs: `Clock`, or that of a simulated world."""

    def now_ns(self) -> int:
        """Return the nanoseconds since the start of the run."""


@dataclass(frozen=True, slots=True)
class Clock:
    """Reads time as the history records it."""

    origin_ns: int
    """The CLOCK_MONOTONIC at the start of the run; the manifest carries it to every client."""

    @classmethod
    def start(cls) -> "Clock":
        """Return a clock whose run starts now."""
        return cls(time.monotonic_ns())

    def now_ns(self) -> int:
        """Return the nanoseconds since the start of the run."""
        return time.monotonic_ns() - self.origin_ns


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockSkew:
    """A time for which a node's wall clock was wrong, and by how much: what it wrote says less."""

    node: str
    """Whose clock it was, or EVERY_NODE."""
    from_ns: int
    until_ns: int
    ahead_min_ns: int
    """The least lead of the clock in that time; negative: behind."""
    ahead_max_ns: int
