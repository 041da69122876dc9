"""The fields that steps share. A verb's own class of steps adds those that concern it alone."""

from dataclasses import dataclass

from fencepost.nemesis.targets import Target

AWAIT_BOUND_S = 30.0
"""A step without `within`: longer than a session time-out, an election and a restart together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a play."""

    at_s: float | None = None
    """The time of the play before which it is not performed; of a performed step, the time at which
    it was performed.
    """


Play = tuple[Step, ...]
"""Steps in their order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded(Step):
    """A step whose end is waited for."""

    within_s: float = AWAIT_BOUND_S


@dataclass(frozen=True, slots=True, kw_only=True)
class Breaking(Step):
    """A step that can break something."""

    kind: str = ""
    """The kind of a mix's fault that it is a part of; empty: that of its own verb."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnNodes(Breaking):
    """A step that is done to nodes."""

    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Parties:
    """One end of the links that a rule concerns: all, the clients, or nodes to be resolved."""

    target: Target | None = None
    clients: bool = False

    @property
    def anybody(self) -> bool:
        """Return whether no end was stated."""
        return self.target is None and not self.clients
