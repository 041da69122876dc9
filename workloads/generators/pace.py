"""The number of records that are due: an open-loop schedule.

A closed loop (send, wait, send) sends least just when the system is slow, and so hides exactly what
it is there to find. Here record number i is due at i / rate, whatever the system answers. Overdue
records are made up for, within a bound: beyond it the schedule is given up, so that a cluster that
was away for a minute is not drowned in that minute's records when it returns.
"""

from dataclasses import dataclass
from typing import Final

_SECOND_NS: Final = 1_000_000_000


@dataclass(slots=True, kw_only=True)
class Pace:
    """The schedule of one producer. Times in ns of any one clock that does not go back."""

    rate: float
    """Records a second; 0: as fast as it can, `backlog_max` are always due."""
    backlog_max: int
    """Records that may be overdue at a time."""
    tick_ns: int
    """Records are handed out at most once a tick: a wake-up costs the same for one or for ten."""
    start_ns: int
    forfeited_count: int = 0
    """Records that were overdue beyond the bound, and are never sent."""
    _taken_count: int = 0
    _tick_at_ns: int = 0

    def due(self, now_ns: int) -> int:
        """Return the number of records to send now; 0 before the tick. `take` them, or fewer."""
        if self.rate == 0:
            return self.backlog_max
        if now_ns < self._tick_at_ns:
            return 0
        overdue = self._scheduled(now_ns) - self._taken_count
        excess = max(0, overdue - self.backlog_max)
        self.forfeited_count += excess
        self._taken_count += excess
        return overdue - excess

    def take(self, count: int, now_ns: int) -> None:
        """Take note that `count` of the records that are due were sent."""
        self._taken_count += count
        self._tick_at_ns = now_ns + self.tick_ns

    def wait_ns(self, now_ns: int) -> int:
        """Return the time until a record is due, as seen from now; 0 if one is."""
        if self.rate == 0:
            return 0
        next_at_ns = self.start_ns + int(self._taken_count * _SECOND_NS / self.rate) + 1
        return max(0, next_at_ns - now_ns, self._tick_at_ns - now_ns)

    def _scheduled(self, now_ns: int) -> int:
        return 1 + int((now_ns - self.start_ns) * self.rate / _SECOND_NS)
