"""The command line of a node's JVM, whatever it runs: it starts quickly and takes little."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fencepost.clusters.provision.java import Java

SIMPLE_LOGGER: Final = (
    "-Dorg.slf4j.simpleLogger.logFile=System.out",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS",
)
"""Options for the back end that is fetched with releases that bring none: one line a message, with
time and thread, on stdout, which is the node's log."""

# C1 alone and the serial collector: half the CPU of a start. Nodes of a fault run start often and
# several share few cores; no run measures throughput here.
QUICK_START: Final = "-XX:TieredStopAtLevel=1"
COLLECTOR: Final = "-XX:+UseSerialGC"


def jvm_command(
    java: Java,
    *,
    heap: str,
    hosts: Path,
    class_archive: Path | None,
    options: Sequence[str] = (),
) -> list[str]:
    """The JVM and its options, before class path and main class; `options` win over the others.

    `heap`: its bound, e.g. "256m". `hosts`: the file by which it resolves all names.
    """
    return [
        str(java.executable),
        f"-Xmx{heap}",
        QUICK_START,
        *(() if _chooses_collector(options) else (COLLECTOR,)),
        # A node out of memory is a node that is down, not one that limps.
        "-XX:+ExitOnOutOfMemoryError",
        # No file in /tmp that every start and stop has to touch.
        "-XX:-UsePerfData",
        "-Djava.awt.headless=true",
        # Names mean what the hosts file says at the time of asking.
        f"-Djdk.net.hosts.file={hosts}",
        "-Dsun.net.inetaddr.ttl=0",
        "-Dsun.net.inetaddr.negative.ttl=0",
        *(() if class_archive is None else (f"-XX:SharedArchiveFile={class_archive}",)),
        *options,
    ]


def class_dump_command(
    classes: Path, *, archive: Path, java: Java, class_path: str, heap: str
) -> list[str]:
    """The command that makes an archive of the classes in a list, for `jvm_command`."""
    files = (f"-XX:SharedClassListFile={classes}", f"-XX:SharedArchiveFile={archive}")
    options = ("-Xshare:dump", f"-Xmx{heap}", COLLECTOR, *files)
    return [str(java.executable), *options, "-cp", class_path]


def _chooses_collector(options: Sequence[str]) -> bool:
    return any(re.match(r"-XX:\+Use\w+GC$", option) for option in options)
