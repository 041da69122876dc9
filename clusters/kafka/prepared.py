"""All that has to be there before a cluster's first process starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from fencepost import clusters
from fencepost.clusters.kafka.formatting import Bootstrap
from fencepost.clusters.kafka.launch import LOGGING_FILES
from fencepost.clusters.kafka_port import Role
from fencepost.clusters.provision.files_read import linked_directories, topmost
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.releases import Release, version_numbers
from fencepost.clusters.system import Prepared


@runtime_checkable
class PreparedKafka(Prepared, Protocol):
    """`clusters.system.Prepared` of any cluster whose brokers run a release of Kafka."""

    @property
    def release(self) -> Release:
        """The release of its brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaPrepared:
    """A Java, a release, and what was made of both."""

    java: Java
    release: Release
    bootstrap: Bootstrap
    class_archives: Mapping[Role, Path] = field(default_factory=dict)
    """The archives of classes by role; a start without one is only slower."""
    also: Mapping[str, "KafkaPrepared"] = field(default_factory=dict)
    """The other releases that its nodes may come to run, by the names that a play gives them."""
    levels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """The feature levels in a new cluster (`kafka.features`), by metadata.version."""

    level = None

    @property
    def version(self) -> str:
        """The version of its release."""
        return self.release.version

    @property
    def files_read(self) -> tuple[Path, ...]:
        """Return what its nodes' JVMs read, of every release that a node may come to run.

        Files and directories that exist, absolute, none inside of another, by name.
        """
        java = self.java.home
        every = (self, *self.also.values())
        archives = [archive for one in every for archive in one.class_archives.values()]
        return topmost(
            [
                java,
                *linked_directories(java),
                *(jar.parent for release in self.releases for jar in release.jars),
                *(archive.parent for archive in archives),
                # The configuration of logs, and whatever else a JVM is given of ours.
                *map(Path, clusters.__path__),
            ]
        )

    @property
    def carried(self) -> tuple[Path, ...]:
        """Return the Java, the directories of its jars, and how to log."""
        jars = sorted({jar.parent for release in self.releases for jar in release.jars})
        return (self.java.home, *jars, *LOGGING_FILES)

    @property
    def releases(self) -> tuple[Release, ...]:
        """The releases that the run may come to, the newest last; a user's build as its jars say.

        A newer release defines every record that an older one wrote, in all its versions.
        """
        every = (self.release, *(one.release for one in self.also.values()))
        return tuple(sorted(every, key=lambda one: version_numbers(one.version)))
