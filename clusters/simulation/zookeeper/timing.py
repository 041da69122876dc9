"""The times of an ensemble."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """ZooKeeper's tickTime and its syncLimit, shorter than its defaults as tests have them."""

    tick_ns: int = 200_000_000
    """A leader gives a sign of life twice a tick."""
    patience_ticks: int = 3
    """Ticks without a sign of life after which a leader or a follower is gone."""
    sessions_ms: tuple[int, int] = (400, 4_000)
    """The least and the greatest time-out of a session, 2 and 20 ticks as ZooKeeper has it."""

    @property
    def heartbeat_ns(self) -> int:
        """The time between two signs of life of a leader."""
        return self.tick_ns // 2

    @property
    def patience_ns(self) -> int:
        """The time without a sign of life after which another server is gone."""
        return self.tick_ns * self.patience_ticks
