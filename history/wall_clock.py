"""The wall clock of this machine, compared with the run's clock for as long as the run lasts.

Kafka's timestamps are of wall clocks, all else of the run's own. Both are tied at its start. As NTP
slews them together, they stay so unless somebody steps the wall clock, or the machine slept.
"""

import time
from collections.abc import Callable
from typing import Final

from history.clock import EVERY_NODE, ClockSkew, TellsTime

__all__ = ["STEP_NS", "WallClock"]

STEP_NS: Final = 20_000_000
"""A wall clock that is off by less has kept step."""
_LOOK_NS_MAX: Final = 5_000_000
"""Of a look that took longer it is not known when the wall clock was read."""


class WallClock:
    """The wall clock, of which somebody looks every now and then how far it is ahead."""

    def __init__(
        self, clock: TellsTime, *, origin_utc_ns: int, read: Callable[[], int] = time.time_ns
    ) -> None:
        """`origin_utc_ns`: what the wall clock showed when the run's clock began."""
        self._clock, self._read = clock, read
        self._origin_utc_ns = origin_utc_ns
        self._looked_ns = 0
        self._steps = [(0, 0)]
        """(since when it may be so, ns that it is ahead), from step to step."""
        self._seen_ns = [0]
        """When each was first seen: the one before it may have lasted until then."""

    def look(self) -> None:
        """Compare both clocks now."""
        before_ns = self._clock.now_ns()
        wall_ns = self._read()
        now_ns = self._clock.now_ns()
        if now_ns - before_ns > _LOOK_NS_MAX:
            return
        ahead_ns = wall_ns - self._origin_utc_ns - before_ns
        if abs(ahead_ns - self._steps[-1][1]) >= STEP_NS:
            self._steps.append((self._looked_ns, ahead_ns))
            self._seen_ns.append(now_ns)
        self._looked_ns = before_ns

    def skews(self) -> tuple[ClockSkew, ...]:
        """Return for how long until now it was how far ahead or behind."""
        ends = (*self._seen_ns[1:], self._clock.now_ns())
        return tuple(
            ClockSkew(
                node=EVERY_NODE,
                from_ns=from_ns,
                until_ns=until_ns,
                ahead_min_ns=ahead_ns - STEP_NS,
                ahead_max_ns=ahead_ns + STEP_NS,
            )
            for (from_ns, ahead_ns), until_ns in zip(self._steps, ends, strict=True)
            if ahead_ns
        )
