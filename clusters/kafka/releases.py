"""The jars of a Kafka under test: a release fetched once, or a build of the user's own."""

import re
from functools import partial
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.provision.cache import Progress
from fencepost.clusters.provision.fingerprints import sha256_of
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.maven import Coordinates
from fencepost.clusters.provision.release_line import ReleaseLine
from fencepost.clusters.provision.releases import Release, digest_of, jars_in
from fencepost.history.failure import UsageError

KNOWN_RELEASES: Final = ("3.3.2", "3.4.1", "3.6.2", "3.9.2", "4.0.0", "4.3.1")
"""Releases that were run; any other since the first of them may be asked for."""

_OWN_BUILD: Final = "path:"
LOGGING: Final = Coordinates(organisation="org.slf4j", name="slf4j-simple", revision="1.7.36")
"""The logging back end, which no release brings through Maven; without it a server is silent."""


def _server(name: str) -> Coordinates:
    return Coordinates(organisation="org.apache.kafka", name="kafka_2.13", revision=name)


LINE: Final = ReleaseLine(
    title="Kafka",
    known=KNOWN_RELEASES,
    oldest=(3, 3),
    too_old="to run without ZooKeeper",
    server=_server,
    beside=lambda _name: (LOGGING,),
    other_way="path:DIR for a build",
)


def fetch_release(
    name: str, *, java: Java, warden: Warden, progress: Progress, line: ReleaseLine = LINE
) -> Release:
    """The release of this name, or the build behind `path:DIR`; fetched if it is not in the cache.

    Raises what `ReleaseLine.fetched` does, and UsageError if there is no such build.
    """
    if name.startswith(_OWN_BUILD):
        return _own_build(name)
    return line.fetched(name, java=java, run=partial(run_command, warden=warden), progress=progress)


def release_here(name: str, line: ReleaseLine = LINE) -> Release | None:
    """Return the same if nothing has to be fetched for it, else None."""
    return _own_build(name) if name.startswith(_OWN_BUILD) else line.here(name)


def is_here(name: str) -> bool:
    """Return whether it is in the cache, or a build of the user's. False: it must be fetched.

    Raises UsageError if there is no such release or build, as far as the repository answers.
    """
    return is_here_of(LINE, name)


def is_here_of(line: ReleaseLine, name: str) -> bool:
    """Return the same of a release of this line."""
    if name.startswith(_OWN_BUILD):
        _own_jars(name)
        return True
    return line.is_here(name)


def _own_build(name: str) -> Release:
    """An unpacked distribution (its jars are in `libs`), or a directory of jars."""
    version, jars = _own_jars(name)
    digests = {jar.name: sha256_of(jar) for jar in jars}
    return Release(name=name, version=version, jars=jars, digest=digest_of(digests))


def _own_jars(name: str) -> tuple[str, tuple[Path, ...]]:
    """Return the version and the jars of a build; UsageError if no build is found."""
    root = Path(name.removeprefix(_OWN_BUILD)).expanduser().absolute()
    if ":" in str(root):
        raise UsageError(f'{name}: Java takes the ":" in {root} for the end of a path; rename it')
    jars = jars_in(root / "libs") or jars_in(root)
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
