"""The command line of a node's JVM, and of Kafka's own tools: pure functions of what is known."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from clusters.kafka.releases import Release
from clusters.provision.java import Java

__all__ = ["LOGGING_FILES", "class_dump_command", "server_command", "tool_command"]

_SERVER: Final = "kafka.Kafka"

# C1 alone and the serial collector: half the CPU of a start. Nodes of a fault run start often and
# several share few cores; no run measures throughput here.
_QUICK_START: Final = "-XX:TieredStopAtLevel=1"
_COLLECTOR: Final = "-XX:+UseSerialGC"
_HEAP: Final = "-Xmx256m"

LOGGING_FILES: Final = tuple(
    Path(__file__).with_name(name) for name in ("log4j.properties", "log4j2.properties")
)
"""The files that the logging back ends of a build read."""

# One line a message, with time and thread, on stdout: the node's log. The first three are for the
# back end that is fetched with a release; a build of the user's own has one of the other two.
_LOGGING: Final = (
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
    f"-Dlog4j.configuration={LOGGING_FILES[0].as_uri()}",
    f"-Dlog4j2.configurationFile={LOGGING_FILES[1].as_uri()}",
)


def server_command(
    *,
    java: Java,
    release: Release,
    properties: Path,
    hosts: Path,
    class_archive: Path | None,
    options: Sequence[str] = (),
) -> list[str]:
    """The command that runs a node in the foreground. `options` win over the defaults."""
    return [
        str(java.executable),
        _HEAP,
        _QUICK_START,
        *(() if _chooses_collector(options) else (_COLLECTOR,)),
        # A node out of memory is a node that is down, not one that limps.
        "-XX:+ExitOnOutOfMemoryError",
        # No file in /tmp that every start and stop has to touch.
        "-XX:-UsePerfData",
        "-Djava.awt.headless=true",
        # Names mean what the hosts file says at the time of asking.
        f"-Djdk.net.hosts.file={hosts}",
        "-Dsun.net.inetaddr.ttl=0",
        "-Dsun.net.inetaddr.negative.ttl=0",
        *_LOGGING,
        *(() if class_archive is None else (f"-XX:SharedArchiveFile={class_archive}",)),
        *options,
        *("-cp", release.class_path, _SERVER, str(properties)),
    ]


def tool_command(
    main_class: str, arguments: Sequence[str], *, java: Java, release: Release
) -> list[str]:
    """The command that runs one of Kafka's tools, with nothing in its output but its own words."""
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    options = (_QUICK_START, _COLLECTOR, "-XX:-UsePerfData", quiet)
    return [str(java.executable), *options, "-cp", release.class_path, main_class, *arguments]


def class_dump_command(classes: Path, *, archive: Path, java: Java, release: Release) -> list[str]:
    """The command that makes an archive of the classes in a list, for `server_command`."""
    files = (f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={archive}")
    options = ("-Xshare:dump", _HEAP, _COLLECTOR, *files)
    return [str(java.executable), *options, "-cp", release.class_path]


def _chooses_collector(options: Sequence[str]) -> bool:
    return any(re.match(r"-XX:\+Use\w+GC$", option) for option in options)
