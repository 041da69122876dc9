"""All that has to be there before the first process of such a cluster starts."""

from dataclasses import dataclass
from pathlib import Path

from fencepost.clusters.kafka.launch import LOGGING_FILES
from fencepost.clusters.provision.files_read import topmost
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.releases import Release
from fencepost.clusters.zookeeper.prepared import ZooKeeperPrepared


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaZooKeeperPrepared:
    """A release of Kafka, the archive of its classes, and all that the ensemble needs."""

    release: Release
    ensemble: ZooKeeperPrepared
    class_archive: Path | None = None
    """The archive of classes of a broker; None if none was made: starts are slower."""

    level = None

    @property
    def java(self) -> Java:
        """The Java of all nodes."""
        return self.ensemble.java

    @property
    def version(self) -> str:
        """The version of its release of Kafka."""
        return self.release.version

    @property
    def files_read(self) -> tuple[Path, ...]:
        """Return what its nodes' JVMs read."""
        archive = () if self.class_archive is None else (self.class_archive.parent,)
        return topmost([*self.ensemble.files_read, *self._jars(), *archive])

    @property
    def carried(self) -> tuple[Path, ...]:
        """Return the Java, the directories of both kinds of jars, and how to log."""
        return (*self.ensemble.carried, *self._jars(), *LOGGING_FILES)

    def _jars(self) -> tuple[Path, ...]:
        return tuple(sorted({jar.parent for jar in self.release.jars}))
