"""The jars of a Kafka of the ZooKeeper generation, from 2.0 to 3.9."""

from functools import partial
from typing import Final

from fencepost.clusters.kafka import releases
from fencepost.clusters.kafka.releases import LOGGING
from fencepost.clusters.provision.maven import Coordinates
from fencepost.clusters.provision.release_line import ReleaseLine
from fencepost.clusters.provision.releases import version_numbers

KNOWN_RELEASES: Final = ("2.0.0", "2.1.1", "2.2.2", "2.5.1", "2.6.3", "2.8.2", "3.4.1", "3.9.2")
"""Releases that were run; any other between the first and the last may be asked for."""

_OWN_CLIENT: Final = (2, 4)
"""Releases before bring a client of ZooKeeper's (3.4) that finds no server on Java 14 and later;
their jars are for Scala 2.12 at most."""
_CLIENT: Final = Coordinates(
    organisation="org.apache.zookeeper", name="zookeeper", revision="3.6.4"
)
"""A client that stands in for theirs: of two revisions Ivy takes the later."""


def _server(name: str) -> Coordinates:
    scala = "2.12" if version_numbers(name) < _OWN_CLIENT else "2.13"
    return Coordinates(organisation="org.apache.kafka", name=f"kafka_{scala}", revision=name)


def _beside(name: str) -> tuple[Coordinates, ...]:
    return (LOGGING, _CLIENT) if version_numbers(name) < _OWN_CLIENT else (LOGGING,)


LINE: Final = ReleaseLine(
    title="Kafka",
    known=KNOWN_RELEASES,
    oldest=(2, 0),
    too_old="to be asked what its brokers hold",
    end=(4, 0),
    too_new="to run on ZooKeeper",
    server=_server,
    beside=_beside,
    other_way="path:DIR for a build",
)

fetch_release: Final = partial(releases.fetch_release, line=LINE)
"""Return the release of this name, as `clusters.kafka.releases` does."""
is_here: Final = partial(releases.is_here_of, LINE)
"""Return whether nothing has to be fetched for a release."""
release_here: Final = partial(releases.release_here, line=LINE)
"""Return the release of this name if nothing has to be fetched for it, else None."""
