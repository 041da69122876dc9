"""The software of a Kafka cluster's node: a release in a JVM, on a directory formatted for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from fencepost.clusters.kafka.configuration import HOSTS, PROPERTIES, KafkaNode
from fencepost.clusters.kafka.formatting import directory_id_of, format_directory
from fencepost.clusters.kafka.launch import server_command, tool_command
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka.voters import VoterSeat
from fencepost.clusters.processes.logs import last_words
from fencepost.clusters.witness.live import ReplicaHoldings, holdings_of


class KafkaFiles:
    """The part of `clusters.processes.node.Software` for files with Kafka's names and formats."""

    __slots__ = ()
    id_file = "meta.properties"

    def last_words(self, log: Path, *, since: int) -> str:
        """The first errors in its log, and the last."""
        return last_words(log, since=since)

    def holdings(self, data: Path) -> ReplicaHoldings:
        """Return its replicas' log ends, and the sizes of its files."""
        return holdings_of(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSoftware(KafkaFiles):
    """`clusters.processes.node.Software` of one node."""

    node: KafkaNode
    prepared: KafkaPrepared
    cluster_id: str
    options: Sequence[str]
    """Extra options of its JVM."""
    seat: VoterSeat | None = None
    """Its place in the first voter set, if it has one."""

    @property
    def first_directory_id(self) -> str | None:
        """The first directory id of a voter, if it has a seat in the voter set."""
        return None if self.seat is None else self.seat.directory_id

    def of(self, prepared: KafkaPrepared) -> Self:
        """Return it with another release. Later formatting begins where this cluster began."""
        names_directories = prepared.bootstrap.names_directories
        bootstrap = replace(self.prepared.bootstrap, names_directories=names_directories)
        return replace(self, prepared=replace(prepared, bootstrap=bootstrap))

    def command(self, directory: Path) -> list[str]:
        """The JVM's command line."""
        return server_command(
            java=self.prepared.java,
            release=self.prepared.release,
            properties=directory / PROPERTIES,
            hosts=directory / HOSTS,
            class_archive=self.prepared.class_archives.get(self.node.roles[-1]),
            options=self.options,
        )

    def format(self, data: Path, *, directory_id: str | None) -> None:
        """Format as the release's own tool does."""
        format_directory(
            data,
            bootstrap=self.prepared.bootstrap,
            cluster_id=self.cluster_id,
            node_id=self.node.node_id,
            directory_id=directory_id,
            seat=self.seat,
        )

    def format_command(self, directory: Path) -> list[str] | None:
        """The StorageTool's command line: a voter of a dynamic quorum comes back as an observer."""
        arguments = [
            "format",
            "--cluster-id",
            self.cluster_id,
            "--config",
            str(directory / PROPERTIES),
        ]
        arguments += ["--release-version", self.prepared.bootstrap.metadata_version]
        if self.seat is not None:
            arguments.append("--no-initial-controllers")
        return tool_command(
            "kafka.tools.StorageTool",
            arguments,
            java=self.prepared.java,
            release=self.prepared.release,
        )

    def directory_id(self, data: Path) -> str | None:
        """The id of a formatted data directory; None if its release gives it none."""
        return directory_id_of(data)
