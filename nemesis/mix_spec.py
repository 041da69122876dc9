"""The limits of random faults, as a scenario states them."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class MixSpec:
    """The limits of a mix: possible faults, their frequency and duration, how many at a time."""

    faults: tuple[str, ...] = ("kill", "pause", "restart")
    targets: tuple[str, ...] = ("one broker", "leader", "active controller")
    """The targets, drawn with equal chance: those that the system describes (`leader` and
    `isr follower` of a random partition, …), or one|minority|majority|all nodes of a role.
    """
    system: str = "kafka"
    """The system whose nodes they are, by its name."""
    gap_s: tuple[float, float] = (2.0, 5.0)
    """The time from the recovery after one fault to the next one (with overlap: from begin to
    begin).
    """
    duration_s: tuple[float, float] = (3.0, 8.0)
    down: Mapping[str, int] = field(default_factory=dict)
    """The number of nodes of a role that may be down at once, by the role's name; 1 for a role that
    is not here.
    """
    overlap: bool = False
    rounds: bool = False
    """Each kind of fault comes once before any comes again, and so does each target."""
    windows: tuple[str, ...] = ()
    """The messages that faults may wait for (`nemesis.messages`); none stated: any."""
    demanded: tuple[str, ...] = ()
    """The kinds without which the run proves nothing: each comes once before any other."""

    def down_max(self, role: str) -> int:
        """Return how many nodes of the role may be down at once."""
        return self.down.get(role, 1)
