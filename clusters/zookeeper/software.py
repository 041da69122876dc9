"""The software of an ensemble's server: a release in a JVM, on a directory with its id."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.processes.logs import last_words
from fencepost.clusters.provision.jvm import SIMPLE_LOGGER, jvm_command
from fencepost.clusters.zookeeper.configuration import CONFIGURATION, HOSTS, MYID
from fencepost.clusters.zookeeper.prepared import LOGGING_FILES, ZooKeeperPrepared
from fencepost.clusters.zookeeper.transaction_log import DiskHoldings, holdings_of

HEAP: Final = "128m"
"""The bound on the heap of a server."""
_SERVER: Final = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
# The back end that a release brings reads one of them.
_LOGGING: Final = tuple(
    f"-D{name}={file.as_uri()}"
    for name, file in zip(
        ("log4j.configuration", "log4j2.configurationFile", "logback.configurationFile"),
        LOGGING_FILES,
        strict=True,
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSoftware:
    """`clusters.processes.node.Software` of one server."""

    number: int
    """Its `myid`."""
    prepared: ZooKeeperPrepared
    options: Sequence[str]
    """Extra options of its JVM."""

    first_directory_id = None
    id_file = MYID

    def command(self, directory: Path) -> list[str]:
        """The JVM's command line."""
        jvm = jvm_command(
            self.prepared.java,
            heap=HEAP,
            hosts=directory / HOSTS,
            class_archive=self.prepared.class_archive,
            options=(
                *SIMPLE_LOGGER,
                *_LOGGING,
                "-Dzookeeper.jmx.log4j.disable=true",
                *self.options,
            ),
        )
        class_path = self.prepared.release.class_path
        return [*jvm, "-cp", class_path, _SERVER, str(directory / CONFIGURATION)]

    def format(self, data: Path, *, directory_id: str | None) -> None:  # noqa: ARG002 -- the port's
        """Make a data directory that states its id; the server makes the rest."""
        data.mkdir(parents=True)
        (data / MYID).write_text(f"{self.number}\n")

    def format_command(self, directory: Path) -> list[str] | None:  # noqa: ARG002 -- the port's
        """Do nothing: a server needs its id alone."""
        return None

    def directory_id(self, data: Path) -> str | None:  # noqa: ARG002 -- the port's
        """Return None: a directory has no id of its own."""
        return None

    def last_words(self, log: Path, *, since: int) -> str:
        """The first errors in its log, and the last."""
        return last_words(log, since=since)

    def holdings(self, data: Path) -> DiskHoldings:
        """Return its last transaction, and its epochs."""
        return holdings_of(data)
