"""The source of a run's time: the machine's clock, or a simulated world's."""

import time
from typing import Protocol

__all__ = ["RealTime", "Time"]


class Time(Protocol):
    """A clock that does not go back, and a way to let it go on."""

    def now_s(self) -> float:
        """Return the seconds since some moment."""

    def sleep(self, seconds: float) -> None:
        """Return when so much time has passed."""

    def sleep_until(self, moment_s: float) -> None:
        """Return at this moment of the clock, or at once if it has passed."""


class RealTime:
    """The machine's."""

    def now_s(self) -> float:
        """Return the seconds of the monotonic clock."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Sleep for this many seconds."""
        time.sleep(seconds)

    def sleep_until(self, moment_s: float) -> None:
        """Do nothing until then."""
        time.sleep(max(0.0, moment_s - self.now_s()))
