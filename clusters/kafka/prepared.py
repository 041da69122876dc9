"""All that has to be there before a cluster's first process starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clusters.kafka.formatting import Bootstrap
from clusters.kafka.releases import Release, version_numbers
from clusters.kafka_port import Role
from clusters.provision.java import Java

__all__ = ["Prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A Java, a release, and what was made of both."""

    java: Java
    release: Release
    bootstrap: Bootstrap
    class_archives: Mapping[Role, Path] = field(default_factory=dict)
    """By role; a start without one is only slower."""
    also: Mapping[str, "Prepared"] = field(default_factory=dict)
    """By the names that a play gives them: the other releases that its nodes may come to run."""
    levels: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By metadata.version: the level of each feature in a new cluster of it (`kafka.features`)."""

    @property
    def releases(self) -> tuple[Release, ...]:
        """All that the run may come to, the newest last; a build of one's own by its jars' word.

        A newer release defines every record that an older one wrote, in all its versions.
        """
        every = (self.release, *(one.release for one in self.also.values()))
        return tuple(sorted(every, key=lambda one: version_numbers(one.version)))
