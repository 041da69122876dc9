"""The files of this machine that a node's JVM reads outside the node's own directory.

A host whose nodes do not see this machine's files needs to know. A distribution's Java is spread:
Debian's has its configuration in /etc and its authorities in /etc/ssl, behind symbolic links.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

_RUNNING_PARTS: Final = ("bin", "conf", "lib")
"""The parts of a Java's home that run; the others are documentation and headers."""


def linked_directories(java_home: Path) -> Iterator[Path]:
    """Yield the directories outside of a Java to which its symbolic links lead."""
    for part in _RUNNING_PARTS:
        for link in (java_home / part).rglob("*"):
            target = link.resolve()
            if link.is_symlink() and target.exists() and not target.is_relative_to(java_home):
                yield target.parent


def topmost(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths that are inside of no other, once each, by name."""
    kept: list[Path] = []
    for path in sorted(set(paths)):
        if not kept or not path.is_relative_to(kept[-1]):
            kept.append(path)
    return tuple(kept)
