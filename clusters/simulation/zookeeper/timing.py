"""The times of an ensemble."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """ZooKeeper's tickTime and its syncLimit, shorter than its defaults as tests have them."""

    tick_ns: int = 200_000_000
    """Leader and followers look at each other twice a tick."""
    patience_ticks: int = 3
    """Ticks without contact after which a leader or a follower is gone."""
    sessions_ms: tuple[int, int] = (400, 4_000)
    """The least and the greatest time-out of a session, 2 and 20 ticks as ZooKeeper has it."""

    @property
    def heartbeat_ns(self) -> int:
        """The time between two looks of a leader or a follower at the others."""
        return self.tick_ns // 2

    @property
    def look_ns(self) -> int:
        """The time between two looks of a server for a leader."""
        return self.tick_ns // 4

    @property
    def patience_ns(self) -> int:
        """The time without contact after which another server is gone."""
        return self.tick_ns * self.patience_ticks
