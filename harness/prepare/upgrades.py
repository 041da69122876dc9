"""The releases and feature levels that a play needs beside those that its cluster starts with."""

from collections.abc import Iterator

from clusters.system import Wanted
from nemesis.steps import Play, flat
from nemesis.verbs.finalise import Finalise
from nemesis.verbs.start import StartsAnew
from nemesis.verbs.step import Step

__all__ = ["wanted_by"]


def wanted_by(play: Play | None, *, portable: bool = False) -> Wanted:
    """Return every release and metadata.version that the play names."""
    releases, levels = [], []
    for index, step in _steps(play or ()):
        if isinstance(step, StartsAnew) and step.release is not None:
            releases.append((index, step.release))
        if isinstance(step, Finalise):
            levels.append((index, step.version))
    return Wanted(releases=releases, levels=levels, portable=portable)


def _steps(play: Play) -> Iterator[tuple[int, Step]]:
    """Yield each step with the place of the one in the file that it is part of."""
    for index, top in enumerate(play):
        for step in flat((top,)):
            yield index, step
