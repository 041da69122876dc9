"""The jars of a ZooKeeper under test: PySpark brings one release, the others are fetched once."""

import re
import shutil
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.provision.cache import Progress
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.maven import Coordinates
from fencepost.clusters.provision.release_line import ReleaseLine
from fencepost.clusters.provision.releases import Release, note_fetched

KNOWN_RELEASES: Final = ("3.5.10", "3.6.4", "3.7.2", "3.8.4", "3.9.5")
"""Releases that were run; any other since 3.5 may be asked for."""
_BROUGHT: Final = re.compile(
    r"(zookeeper(-jute)?|netty-(all|buffer|codec(-base)?|common|handler|resolver|transport"
    r"(-classes-epoll|-native-unix-common)?)|slf4j-api|log4j-(api|core|slf4j2-impl)"
    r"|metrics-core|snappy-java|commons-(io|cli)|audience-annotations)-\d[\w.]*\.jar"
)
"""The jars of PySpark's that a server takes."""

_UNSTATED: Final = (
    Coordinates(organisation="io.dropwizard.metrics", name="metrics-core", revision="4.1.12.1"),
    Coordinates(organisation="org.xerial.snappy", name="snappy-java", revision="1.1.10.5"),
)
"""The jars that a server needs from 3.6 on, and its coordinates do not ask for."""
_BACK_END: Final = re.compile(
    r"(slf4j-(log4j12|reload4j|simple|jdk14)|logback-classic|log4j-slf4j2?-impl)-\d.*"
)
_FACADE: Final = re.compile(r"slf4j-api-(\d[\w.]*)\.jar")


def _lacking(jars: Sequence[Path]) -> tuple[Coordinates, ...]:
    """Return a back end for its log, if the release brings none, as 3.7.2 and 3.9.3 do."""
    if any(_BACK_END.fullmatch(jar.name) for jar in jars):
        return ()
    found = (_FACADE.fullmatch(jar.name) for jar in jars)
    return tuple(
        Coordinates(organisation="org.slf4j", name="slf4j-simple", revision=facade[1])
        for facade in found
        if facade
    )


def _server(name: str) -> Coordinates:
    return Coordinates(organisation="org.apache.zookeeper", name="zookeeper", revision=name)


LINE: Final = ReleaseLine(
    title="ZooKeeper",
    known=KNOWN_RELEASES,
    oldest=(3, 5),
    too_old="to state what it serves",
    server=_server,
    beside=lambda _name: _UNSTATED,
    lacking=_lacking,
)


def fetch_release(name: str, *, java: Java, warden: Warden, progress: Progress) -> Release:
    """The release of this name; taken from PySpark's jars or fetched if it is not in the cache.

    Raises what `ReleaseLine.fetched` does.
    """
    if not (brought := _brought(name)):
        return LINE.fetched(
            name, java=java, run=partial(run_command, warden=warden), progress=progress
        )

    def copy(draft: Path) -> None:
        (draft / "jars").mkdir()
        for jar in brought:
            shutil.copy(jar, draft / "jars")
        note_fetched(draft)

    return LINE.kept(name, copy, progress=progress)


def is_here(name: str) -> bool:
    """Return whether nothing has to be fetched for it.

    Raises UsageError if there is no such release, as far as the repository answers.
    """
    return bool(_brought(name)) or LINE.is_here(name)


def _brought(name: str) -> tuple[Path, ...]:
    """Return what a server of this release takes of PySpark's jars; nothing if it has another."""
    # Found, not imported: PySpark takes longer than a refusal may.
    found = find_spec("pyspark")
    places = found.submodule_search_locations if found is not None else None
    jars = [jar for place in places or () for jar in sorted(Path(place, "jars").glob("*.jar"))]
    if not any(jar.name == f"zookeeper-{name}.jar" for jar in jars):
        return ()
    return tuple(jar for jar in jars if _BROUGHT.fullmatch(jar.name))
