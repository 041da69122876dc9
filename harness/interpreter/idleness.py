"""The time for which a mix is idle: it has nothing broken, though something is due.

A stretch of it begins when the last fault is mended, and ends with the next one that takes effect.
The gaps that were drawn in between do not count, as nothing is due in them, and do not end it.
"""

from dataclasses import dataclass, field

from fencepost.nemesis.waiting import Waiting


@dataclass(slots=True, kw_only=True)
class Idle:
    """A stretch of idle time."""

    begin_s: float = 0.0
    """Its beginning, by the run's clock."""
    idle_s: float = 0.0
    by_words: dict[str, float] = field(default_factory=dict)
    """The time by what was waited for."""

    @property
    def words(self) -> str:
        """The event that was waited for the longest time."""
        return max(self.by_words, key=self.by_words.__getitem__, default="")


@dataclass(slots=True, kw_only=True)
class Idleness:
    """The sum over the work of a mix: call `pass_to` as time goes on, `now_is` as things change."""

    now_s: float
    zero_s: float = 0.0
    """The time of the run's clock at second 0."""
    longest: Idle = field(default_factory=Idle)
    waits_s: dict[str, float] = field(default_factory=dict)
    """All of it, by the kind of event that was waited for."""
    _now: Idle = field(default_factory=Idle)
    _waiting: Waiting | None = None

    def pass_to(self, now_s: float) -> None:
        """Count the time until `now_s`."""
        passed_s, self.now_s = now_s - self.now_s, now_s
        waiting = self._waiting
        if waiting is None or passed_s <= 0:
            return
        idle = self._now
        if not idle.by_words:
            idle.begin_s = self.zero_s + now_s - passed_s
        idle.idle_s += passed_s
        _add(idle.by_words, f"{waiting.kind}: {waiting.words}", passed_s)
        _add(self.waits_s, waiting.kind.value, passed_s)
        if idle.idle_s > self.longest.idle_s:
            self.longest = idle

    def now_is(self, waiting: Waiting | None, *, broken: bool) -> None:
        """Note what the mix waits for from now on, and whether anything is broken by it."""
        self._waiting = None if broken else waiting
        if broken:
            self._now = Idle()


def _add(sums: dict[str, float], name: str, seconds: float) -> None:
    sums[name] = sums.get(name, 0.0) + seconds
