"""The wall clock of this machine, compared with the run's clock for as long as the run lasts.

Kafka's timestamps are of wall clocks, all else of the run's own. Both are tied at its start. As NTP
slews them together, they stay so unless somebody steps the wall clock, or the machine slept.
"""

import time
from collections.abc import Callable
from typing import Final, NamedTuple

from fencepost.history.clock import EVERY_NODE, ClockSkew, TellsTime

STEP_NS: Final = 20_000_000
"""A wall clock that is off by less has kept step."""
_LOOK_NS_MAX: Final = 5_000_000
"""Of a look that took longer it is not known when the wall clock was read."""


class _Step(NamedTuple):
    """The wall clock was found elsewhere than before."""

    since_ns: int
    """The last look at which it was not: it may have been so from then on."""
    seen_ns: int
    """The first look at which it was: it may have been as before until then."""
    ahead_ns: int


class WallClock:
    """The wall clock, of which somebody looks every now and then how far it is ahead."""

    def __init__(
        self, clock: TellsTime, *, origin_utc_ns: int, read: Callable[[], int] = time.time_ns
    ) -> None:
        """`origin_utc_ns`: what the wall clock showed when the run's clock began."""
        self._clock, self._read = clock, read
        self._origin_utc_ns = origin_utc_ns
        self._looked_ns = 0
        self._steps = [_Step(since_ns=0, seen_ns=0, ahead_ns=0)]

    def look(self) -> None:
        """Compare both clocks now."""
        before_ns = self._clock.now_ns()
        wall_ns = self._read()
        now_ns = self._clock.now_ns()
        if now_ns - before_ns > _LOOK_NS_MAX:
            return
        ahead_ns = wall_ns - self._origin_utc_ns - before_ns
        if abs(ahead_ns - self._steps[-1].ahead_ns) >= STEP_NS:
            self._steps.append(_Step(since_ns=self._looked_ns, seen_ns=now_ns, ahead_ns=ahead_ns))
        self._looked_ns = before_ns

    def skews(self) -> tuple[ClockSkew, ...]:
        """Return for how long until now it was how far ahead or behind."""
        ends = (*(step.seen_ns for step in self._steps[1:]), self._clock.now_ns())
        return tuple(
            ClockSkew(
                node=EVERY_NODE,
                from_ns=step.since_ns,
                until_ns=until_ns,
                ahead_min_ns=step.ahead_ns - STEP_NS,
                ahead_max_ns=step.ahead_ns + STEP_NS,
            )
            for step, until_ns in zip(self._steps, ends, strict=True)
            if abs(step.ahead_ns) >= STEP_NS
        )
