"""The command line of a node's JVM, and of Kafka's own tools: pure functions of what is known."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.jvm import COLLECTOR, QUICK_START, SIMPLE_LOGGER, jvm_command
from fencepost.clusters.provision.releases import Release

_SERVER: Final = "kafka.Kafka"
HEAP: Final = "256m"
"""The bound on the heap of a node."""

LOGGING_FILES: Final = tuple(
    Path(__file__).with_name(name) for name in ("log4j.properties", "log4j2.properties")
)
"""The files that the logging back ends of a build read."""

# A build of the user's own has one of the other two back ends.
_LOGGING: Final = (
    *SIMPLE_LOGGER,
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
    jvm = jvm_command(
        java,
        heap=HEAP,
        hosts=hosts,
        class_archive=class_archive,
        options=(*_LOGGING, *options),
    )
    return [*jvm, "-cp", release.class_path, _SERVER, str(properties)]


def tool_command(
    main_class: str, arguments: Sequence[str], *, java: Java, release: Release
) -> list[str]:
    """The command that runs one of Kafka's tools, with nothing in its output but its own words."""
    quiet = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    options = (QUICK_START, COLLECTOR, "-XX:-UsePerfData", quiet)
    return [str(java.executable), *options, "-cp", release.class_path, main_class, *arguments]
