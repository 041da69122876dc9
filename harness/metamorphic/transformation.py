"""A change of a stored run, and what may be told of the run then."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.history.failure import UsageError
from fencepost.nemesis.words import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Transformation:
    """A change of a stored run."""

    name: str
    title: str
    """What is done, in words."""
    change: Callable[[CopiedRun, Random], bool]
    """Does it; False if the run has nothing to which it could be done."""
    keeps: bool = False
    """A valid verdict stays valid; else it may become unknown."""
    is_plant: bool = False
    """It plants a violation: then the run may not be valid any more."""
    called: Sequence[str] = ()
    """The checks of which one has to call a plant, unless the run is unknown then."""


def transformation_of(name: str, known: Sequence[Transformation]) -> Transformation:
    """Return the transformation of this name; raise UsageError if there is none."""
    for one in known:
        if one.name == name:
            return one
    hint = did_you_mean(name, [one.name for one in known])
    raise UsageError(f"--transformation {name}: there is no such transformation; {hint}")
