"""All that has to be there before an ensemble's first server starts."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost import clusters
from fencepost.clusters.provision.files_read import linked_directories, topmost
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.releases import Release

LOGGING_FILES: Final = tuple(
    Path(__file__).with_name(name)
    for name in ("log4j.properties", "log4j2.properties", "logback.xml")
)
"""The files that the logging back ends of releases read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperPrepared:
    """A Java, a release, and the archive of its classes."""

    java: Java
    release: Release
    class_archive: Path | None = None
    """The archive of its classes; None if none was made: starts are slower."""

    level = None

    @property
    def version(self) -> str:
        """The version of its release."""
        return self.release.version

    @property
    def files_read(self) -> tuple[Path, ...]:
        """Return what its servers' JVMs read: Java, jars, archive, and how to log."""
        java = self.java.home
        archive = () if self.class_archive is None else (self.class_archive.parent,)
        return topmost(
            [
                java,
                *linked_directories(java),
                *self._jars(),
                *archive,
                *map(Path, clusters.__path__),
            ]
        )

    @property
    def carried(self) -> tuple[Path, ...]:
        """Return the Java, the directories of its jars, and how to log."""
        return (self.java.home, *self._jars(), *LOGGING_FILES)

    def _jars(self) -> tuple[Path, ...]:
        return tuple(sorted({jar.parent for jar in self.release.jars}))
