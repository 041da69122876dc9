"""Releases as a play names them, and which of them can follow on which.

A metadata.version "4.3-IV0" came with release 4.3: a node of an older release does not know it, and
ends when it meets it. Of a build of the user's own nothing is known before it is looked at.
"""

import re
from typing import Final

from history.failure import SpecError

__all__ = ["line_of", "parse_release", "parse_version"]

_RELEASE: Final = re.compile(r"\d+\.\d+\.\d+(-[A-Za-z0-9.]+)?|path:.+")
_VERSION: Final = re.compile(r"\d+\.\d+(-IV\d+)?")
_LINE: Final = re.compile(r"(\d+)\.(\d+)")
_OLDEST: Final = (3, 3)


def parse_release(value: object) -> str:
    """Return `3.9.2` or `path:DIR`; raise SpecError for others, and for releases without KRaft."""
    if not isinstance(value, str) or not _RELEASE.fullmatch(value):
        hint = f"; quote it: '{value}'" if isinstance(value, float) else ""
        raise SpecError((), f"expected a release such as 4.3.1, or path:DIR; found {value!r}{hint}")
    line = line_of(value)
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
    line = line_of(value)
    if line is None or line < _OLDEST:
        raise SpecError((), f"no cluster without ZooKeeper runs at metadata.version {value}")
    return value


def line_of(name: str) -> tuple[int, int] | None:
    """Return the line: (4, 3) of release "4.3.1" or metadata.version "4.3-IV0"; None: unknown."""
    found = _LINE.match(name)
    return None if found is None else (int(found[1]), int(found[2]))
