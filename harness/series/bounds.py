"""The bounds of releases that expectations name, and whether a release beside each was tried.

`{kafka: ">=3.8", invalid: [lost-write]}` says that 3.7 differs, or at least that 3.8 does not. So a
release of 3.8 and one of 3.7 have to be among those that the scenario tried: the first on either
side, but for releases that are refused. The parts of a bound are those of its version: `<3.5.2`
lies between 3.5.1 and 3.5.2.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from packaging.specifiers import Specifier
from packaging.version import Version

from fencepost.clusters.provision.release_line import ReleaseLine
from fencepost.harness.scenario.expectation import Expectation, expectation_for, tried_releases

_Parts = tuple[int, ...]

_NEVER: Final = 1_000
_ENDS: Final[dict[int, int]] = {4: 9, 3: 8, 2: 1}
"""Of a first number of Kafka's versions: the last second number of the one before."""


@dataclass(frozen=True, slots=True)
class UntriedBound:
    """A bound that has no release tried on one of its sides."""

    bound: str
    """As the scenario has it: ">=3.5"."""
    untried: str
    """The version without a tried release: "3.5.1", or "3.4" for any release of that line."""


def untried_bounds(
    expectations: tuple[Expectation, ...], line: ReleaseLine
) -> Iterator[UntriedBound]:
    """Yield the bounds without a tried release on either side, those that can be tried.

    Nothing of a scenario that tried no release, and so rests on none.
    """
    tried = {Version(release).release for release in tried_releases(expectations)}
    if not tried:
        return
    beside = {
        wanted: str(specifier)
        for entry in expectations
        for specifier in entry.releases
        for edge in _edges(specifier)
        for wanted in (_below(edge), edge)
    }
    for wanted, bound in beside.items():
        name = ".".join(map(str, wanted))
        stated = expectation_for(expectations, release=name)
        can_be_run = line.oldest <= wanted < (line.end or (_NEVER,)) and not (
            stated and stated.refused
        )
        if can_be_run and not any(_is_of(release, wanted) for release in tried):
            yield UntriedBound(bound, name)


def _edges(specifier: Specifier) -> Iterator[_Parts]:
    """Yield the versions from which on something else is said than below."""
    version = Version(specifier.version).release
    if specifier.operator in (">=", "<", "=="):
        yield version
    if specifier.operator in (">", "<=", "=="):
        yield (*version[:-1], version[-1] + 1)


def _below(edge: _Parts) -> _Parts:
    *before, last = edge
    if last > 0:
        return (*before, last - 1)
    if len(before) > 1:
        return _below(tuple(before))
    return (before[0] - 1, _ENDS[before[0]])


def _is_of(release: _Parts, wanted: _Parts) -> bool:
    return release[: len(wanted)] == wanted
