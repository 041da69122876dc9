"""The release that each node runs and the metadata.version in force, as far as a play says so.

Kafka goes up in the binaries first and in the metadata.version last, and down the other way round.
A metadata.version "4.3-IV0" came with release 4.3: a node of an older release does not know it, and
ends when it reads that version. Of a build of the user's own nothing is known before it is looked
at. A step is refused only if it is impossible whichever node a description or a choice resolves to;
so anything uncertain is kept as the set of its possible values.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Self

from fencepost.clusters.port import OWN_ROLES, NodeName, NodeRoles
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError
from fencepost.nemesis.targets import Choice, NamedNodes, Target

Line = tuple[int, int] | None
"""The line of a release or a metadata.version, e.g. (4, 3); None: unknown until it is looked up."""
_RELEASE: Final = re.compile(r"\d+\.\d+\.\d+(-[A-Za-z0-9.]+)?|path:.+")
_VERSION: Final = re.compile(r"\d+\.\d+(-IV\d+)?")
_LINE: Final = re.compile(r"(\d+)\.(\d+)")
_OLDEST: Final = (3, 3)


@dataclass(slots=True, kw_only=True)
class ReleaseCourse:
    """The releases and metadata.versions that a play has led to.

    It is copied for each of several courses that the play may take.
    """

    runs: dict[NodeName, frozenset[str]] = field(default_factory=dict)
    """The releases of which a node may be."""
    finalised: frozenset[str] = frozenset()
    """The metadata.versions that may be in force."""
    roles: NodeRoles = OWN_ROLES

    @classmethod
    def at_the_start(cls, stage: Stage) -> Self:
        """Return the course with every node on the cluster's release and first metadata.version."""
        return cls(
            runs=dict.fromkeys(stage.nodes, frozenset({stage.release})),
            finalised=frozenset({stage.metadata_version or stage.release}),
            roles=stage.node_roles,
        )

    def copy(self) -> Self:
        """Return a copy of the course up to here."""
        return type(self)(runs=dict(self.runs), finalised=self.finalised, roles=self.roles)

    def moved(self, target: Target, release: str) -> None:
        """Have the target run the release from here on; raise SpecError if it cannot."""
        floor = _lowest(self.finalised)
        line = _line_of(release)
        if line is not None and floor is not None and line < floor:
            counts = " or ".join(sorted(self.finalised))
            raise SpecError(
                ("to",),
                f"Kafka {release} does not know metadata.version {counts}, which counts at this "
                "step; finalise an older one first",
            )
        if isinstance(target, NamedNodes):
            self.runs |= dict.fromkeys(target.nodes, frozenset({release}))
            return
        for node in self.runs:
            if not isinstance(target, Choice) or self.roles.has(node, target.role):
                self.runs[node] |= {release}

    def finalise(self, version: str, *, members: Iterable[NodeName]) -> None:
        """Put the metadata.version in force; raise SpecError if a member cannot know it."""
        wanted = _line_of(version)
        for node in members:
            newest = _highest(self.runs[node])
            if wanted is not None and newest is not None and newest < wanted:
                runs = " or ".join(sorted(self.runs[node]))
                raise SpecError(
                    ("finalise",),
                    f"{node} runs Kafka {runs} at this step, which has no metadata.version "
                    f"{version}; restart it to a newer release first",
                )
        self.finalised = frozenset({version})

    def doubt(self) -> None:
        """Let any node be of any release from here on, and any metadata.version be in force."""
        self.runs = {node: releases | {""} for node, releases in self.runs.items()}
        self.finalised |= {""}

    def join(self, others: Iterable["ReleaseCourse"]) -> None:
        """Join the courses: what happened in any of them may have happened."""
        for other in others:
            self.finalised |= other.finalised
            self.runs = _united(self.runs, other.runs)


def _united(
    one: Mapping[NodeName, frozenset[str]], other: Mapping[NodeName, frozenset[str]]
) -> dict[NodeName, frozenset[str]]:
    return {node: releases | other[node] for node, releases in one.items()}


def _lowest(names: Iterable[str]) -> Line:
    """Return the lowest line that may be; None if any of them may be anything."""
    lines = [_line_of(name) for name in names]
    known = [line for line in lines if line is not None]
    return min(known) if known and len(known) == len(lines) else None


def _highest(names: Iterable[str]) -> Line:
    lines = [_line_of(name) for name in names]
    known = [line for line in lines if line is not None]
    return max(known) if known and len(known) == len(lines) else None


def parse_release(value: object) -> str:
    """Return `3.9.2` or `path:DIR`; raise SpecError for others, and for releases without KRaft."""
    if not isinstance(value, str) or not _RELEASE.fullmatch(value):
        hint = f"; quote it: '{value}'" if isinstance(value, float) else ""
        raise SpecError((), f"expected a release such as 4.3.1, or path:DIR; found {value!r}{hint}")
    line = _line_of(value)
    if line is not None and line < _OLDEST:
        raise SpecError((), f"Kafka {value} is too old to run without ZooKeeper")
    return value


def parse_version(value: object) -> str:
    """Return the metadata.version, from 3.3 on: `4.3-IV0` or `'4.3'`; raise SpecError otherwise."""
    if isinstance(value, float):
        raise SpecError((), f"{value!r} is a number; quote it: '{value}'")
    if not isinstance(value, str) or not _VERSION.fullmatch(value):
        raise SpecError(
            (), f"expected a metadata.version such as '4.3' or 3.9-IV0; found {value!r}"
        )
    line = _line_of(value)
    if line is None or line < _OLDEST:
        raise SpecError((), f"no cluster without ZooKeeper runs at metadata.version {value}")
    return value


def _line_of(name: str) -> tuple[int, int] | None:
    """Return the line: (4, 3) of release "4.3.1" or metadata.version "4.3-IV0"; None: unknown."""
    found = _LINE.match(name)
    return None if found is None else (int(found[1]), int(found[2]))
