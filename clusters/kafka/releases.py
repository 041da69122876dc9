"""The jars of a Kafka under test: a release fetched once, or a build of the user's own.

A fetched release is complete or absent, and is known by its digests: each use compares sizes and
modification times, and what differs is read whole. A damaged one is fetched anew.
"""

import hashlib
import json
import re
import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from clusters.hosts.command import run_command
from clusters.hosts.warden import Warden
from clusters.provision.cache import Progress, cache_dir, kept
from clusters.provision.fingerprints import Fingerprint, fingerprint_of, is_unchanged, sha256_of
from clusters.provision.java import Java
from clusters.provision.maven import Coordinates, NotInRepositoryError, fetch_jars, refuse_absent
from history.failure import HarnessError, UsageError

__all__ = [
    "KNOWN_RELEASES",
    "Release",
    "UnfetchedError",
    "fetch_release",
    "is_here",
    "version_numbers",
]

KNOWN_RELEASES: Final = ("3.3.2", "3.4.1", "3.6.2", "3.9.2", "4.0.0", "4.3.1")
"""Releases that were run; any other since the first of them may be asked for."""

_OLDEST: Final = (3, 3)
_OWN_BUILD: Final = "path:"
_INDEX: Final = "release.json"
_NO_CLASSES: Final = ("-sources.jar", "-javadoc.jar", "-scaladoc.jar", "-test.jar")
_LOGGING: Final = Coordinates(organisation="org.slf4j", name="slf4j-simple", revision="1.7.36")
"""The logging back end, which no release brings through Maven; without it a server is silent."""


class UnfetchedError(HarnessError):
    """A release that is not here cannot be fetched now: no network, no room on the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """The jars of one Kafka."""

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


def fetch_release(name: str, *, java: Java, warden: Warden, progress: Progress) -> Release:
    """The release of this name, or the build behind `path:DIR`; fetched if it is not in the cache.

    Raises UsageError if there is no such release or build; UnfetchedError if it is not in the cache
    and cannot be fetched; HarnessError if the cache cannot be used.
    """
    if name.startswith(_OWN_BUILD):
        return _own_build(name)
    _refuse_unless_release(name)
    return kept(
        cache_dir() / "kafka" / name,
        read=_whole,
        build=lambda draft: _fetch(name, draft=draft, java=java, warden=warden),
        doing=f"fetching Kafka {name}",
        progress=progress,
    )


def is_here(name: str) -> bool:
    """Return whether it is in the cache, or a build of the user's. False: it must be fetched.

    Raises UsageError if there is no such release or build, as far as the repository answers.
    """
    if name.startswith(_OWN_BUILD):
        _own_jars(name)
        return True
    _refuse_unless_release(name)
    if _whole(cache_dir() / "kafka" / name) is not None:
        return True
    try:
        refuse_absent(_server(name))
    except NotInRepositoryError as error:
        raise _not_to_be_had(name, error) from error
    return False


def _server(name: str) -> Coordinates:
    return Coordinates(organisation="org.apache.kafka", name="kafka_2.13", revision=name)


def _not_to_be_had(name: str, error: NotInRepositoryError) -> UsageError:
    known = ", ".join(KNOWN_RELEASES)
    return UsageError(f"Kafka {name} cannot be had: {error}; known to work: {known}")


def _refuse_unless_release(name: str) -> None:
    way_out = f"releases known to work: {', '.join(KNOWN_RELEASES)}; or path:DIR for a build"
    if not re.fullmatch(r"\d+\.\d+\.\d+(-[A-Za-z0-9.]+)?", name):
        raise UsageError(f'"{name}" is not a release of Kafka; {way_out}')
    if version_numbers(name) < _OLDEST:
        raise UsageError(f"Kafka {name} is too old to run without ZooKeeper; {way_out}")


def _fetch(name: str, *, draft: Path, java: Java, warden: Warden) -> None:
    work = draft / "work"
    work.mkdir()
    try:
        fetch_jars(
            [_server(name), _LOGGING],
            into=draft / "jars",
            java=java,
            run=partial(run_command, warden=warden),
            work=work,
        )
    except NotInRepositoryError as error:
        raise _not_to_be_had(name, error) from error
    except HarnessError as error:
        raise UnfetchedError(f"Kafka {name} is not in the cache, and {error}") from error
    shutil.rmtree(work)
    index = {jar.name: fingerprint_of(jar) for jar in _jars_in(draft / "jars")}
    (draft / _INDEX).write_text(json.dumps(index, indent=1))


def _whole(home: Path) -> Release | None:
    """Return the release kept here, or None if it is missing or a jar is not what was fetched."""
    try:
        index: dict[str, Fingerprint] = json.loads((home / _INDEX).read_text())
        jars = _jars_in(home / "jars")
        if [jar.name for jar in jars] != sorted(index):
            return None
        if not all(is_unchanged(jar, index[jar.name]) for jar in jars):
            return None
    except (OSError, ValueError, KeyError):
        return None
    digests = {name: str(fingerprint["sha256"]) for name, fingerprint in index.items()}
    return Release(name=home.name, version=home.name, jars=jars, digest=_digest(digests))


def _own_build(name: str) -> Release:
    """An unpacked distribution (its jars are in `libs`), or a directory of jars."""
    version, jars = _own_jars(name)
    digests = {jar.name: sha256_of(jar) for jar in jars}
    return Release(name=name, version=version, jars=jars, digest=_digest(digests))


def _own_jars(name: str) -> tuple[str, tuple[Path, ...]]:
    """Return the version and the jars of a build; UsageError if no build is found."""
    root = Path(name.removeprefix(_OWN_BUILD)).expanduser().absolute()
    if ":" in str(root):
        raise UsageError(f'{name}: Java takes the ":" in {root} for the end of a path; rename it')
    jars = _jars_in(root / "libs") or _jars_in(root)
    clients = [
        found for jar in jars if (found := re.fullmatch(r"kafka-clients-(.+)\.jar", jar.name))
    ]
    if not clients:
        raise UsageError(
            f"{name}: neither {root}/libs/ nor {root}/ holds a kafka-clients-*.jar; expected an "
            "unpacked distribution of Kafka or a directory of all its jars"
        )
    if len(clients) > 1:
        versions = ", ".join(found[1] for found in clients)
        raise UsageError(f"{name}: jars of several versions of Kafka in one place: {versions}")
    return clients[0][1], jars


def _jars_in(directory: Path) -> tuple[Path, ...]:
    found = sorted(directory.glob("*.jar"))
    return tuple(jar for jar in found if not jar.name.endswith(_NO_CLASSES))


def _digest(digests: dict[str, str]) -> str:
    lines = "".join(f"{digest}  {name}\n" for name, digest in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()
