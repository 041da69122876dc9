"""Releases in the cache: jars fetched once by their coordinates, and known by their digests.

A fetched release is complete or absent: each use compares sizes and modification times, and what
differs is read whole. A damaged one is fetched anew. Which coordinates a release has is its
software's.
"""

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.provision.fingerprints import Fingerprint, fingerprint_of, is_unchanged
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.maven import (
    Coordinates,
    NotInRepositoryError,
    RunProgram,
    fetch_jars,
)
from fencepost.history.failure import HarnessError

_INDEX: Final = "release.json"
_NO_CLASSES: Final = ("-sources.jar", "-javadoc.jar", "-scaladoc.jar", "-test.jar")


class UnfetchedError(HarnessError):
    """A release that is not here cannot be fetched now: no network, no room on the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The jars of one release."""

    name: str
    """The name that the user gave it: "3.4.1", "path:/src/kafka"."""
    version: str
    """The version of its own jars: "3.4.1", "4.4.0-SNAPSHOT"."""
    jars: tuple[Path, ...]
    digest: str
    """sha256 over the names and the sha256 of all jars."""

    @property
    def class_path(self) -> str:
        """The text for `java -cp`: always the very same, or an archive of classes would not fit."""
        return ":".join(str(jar) for jar in self.jars)


def version_numbers(version: str) -> tuple[int, ...]:
    """Return (3, 4, 1) for "3.4.1", (4, 4, 0) for "4.4.0-SNAPSHOT"."""
    return tuple(int(number) for number in re.findall(r"\d+", version.partition("-")[0]))


def fetch_into(
    draft: Path, wanted: Sequence[Coordinates], *, title: str, java: Java, run: RunProgram
) -> None:
    """Fill an entry of the cache with the jars of a release: "Kafka 3.4.1".

    Raises NotInRepositoryError if there is no such release, UnfetchedError if it cannot be fetched.
    """
    work = draft / "work"
    work.mkdir()
    try:
        fetch_jars(
            wanted,
            into=draft / "jars",
            java=java,
            run=run,
            work=work,
        )
    except NotInRepositoryError:
        raise
    except HarnessError as error:
        raise UnfetchedError(f"{title} is not in the cache, and {error}") from error
    shutil.rmtree(work)
    note_fetched(draft)


def note_fetched(draft: Path) -> None:
    """Complete an entry of the cache whose jars are there."""
    index = {jar.name: fingerprint_of(jar) for jar in jars_in(draft / "jars")}
    (draft / _INDEX).write_text(json.dumps(index, indent=1))


def whole_release(home: Path) -> Release | None:
    """Return the release kept here, or None if it is missing or a jar is not what was fetched."""
    try:
        index: dict[str, Fingerprint] = json.loads((home / _INDEX).read_text())
        jars = jars_in(home / "jars")
        if [jar.name for jar in jars] != sorted(index):
            return None
        if not all(is_unchanged(jar, index[jar.name]) for jar in jars):
            return None
    except (OSError, ValueError, KeyError):
        return None
    digests = {name: str(fingerprint["sha256"]) for name, fingerprint in index.items()}
    return Release(name=home.name, version=home.name, jars=jars, digest=digest_of(digests))


def jars_in(directory: Path) -> tuple[Path, ...]:
    """Return the jars in a directory that hold classes, by name."""
    found = sorted(directory.glob("*.jar"))
    return tuple(jar for jar in found if not jar.name.endswith(_NO_CLASSES))


def digest_of(digests: dict[str, str]) -> str:
    """Return one sha256 over the names of jars and theirs."""
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
