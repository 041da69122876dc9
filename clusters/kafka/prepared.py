"""All that has to be there before a cluster's first process starts."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from clusters.java import Java
from clusters.kafka.formatting import Bootstrap
from clusters.kafka.releases import Release
from clusters.port import Role

__all__ = ["Prepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A Java, a release, and what was made of both."""

    java: Java
    release: Release
    bootstrap: Bootstrap
    class_archives: Mapping[Role, Path] = field(default_factory=dict)
    """By role; a start without one is only slower."""
