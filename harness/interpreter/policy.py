"""The strictness of a schedule: a run demands evidence of each step, a trial goes on without."""

import math
from dataclasses import dataclass, replace
from typing import Any

from fencepost.clusters.targets import NotNowError
from fencepost.nemesis.verbs.step import Bounded, Step
from fencepost.nemesis.verbs.stop import ShutDown


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The policy of a run, unless it is stated otherwise."""

    demands_evidence: bool = True
    """A step has to be possible and is waited for, and a fault ends when its heal was seen.
    Otherwise a step is done to the nodes that it can be done to, and nothing is waited for but what
    the step itself waits for."""
    tick_s: float = 0.05
    """The time from one look at the cluster to the next."""
    stop_s: float = math.inf
    """The time after which a node that was asked to stop is killed."""
    request_s: float = math.inf
    """The time after which a request of an operator is given up."""
    vacant_s: float = 30.0
    """The bound for a node to take the role that a target describes, as by an election."""
    restart_s: float = 60.0
    """The bound for a restarted node to be whole again: several times the usual duration."""

    @property
    def left(self) -> tuple[type[NotNowError], ...]:
        """The errors after which the next step follows."""
        return () if self.demands_evidence else (NotNowError,)

    def bounded(self, step: Step) -> Any:
        """Return the step within the bounds of this policy."""
        if isinstance(step, ShutDown):
            return replace(step, timeout_s=min(step.timeout_s, self.stop_s))
        if isinstance(step, Bounded):
            return replace(step, within_s=min(step.within_s, self.request_s))
        return step
