"""Reference clusters as processes, which stock clients of Kafka talk to: prepared and built.

They stand where clusters of Kafka's stand: the same nodes, ports and links, the same proxy in
between, the same files for the witness.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.place import KEPT, Site
from fencepost.clusters.kafka.configuration import HOSTS, PROPERTIES, KafkaNode
from fencepost.clusters.kafka.quorum_processes import QuorumProcesses
from fencepost.clusters.kafka.software import KafkaFiles
from fencepost.clusters.kafka_port import KafkaSpec, Quorum
from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.node import ProcessNode
from fencepost.clusters.protocol.metadata_records import Definitions
from fencepost.clusters.provision.java import Java, find_java
from fencepost.clusters.provision.portable import PortableProgram, portable_program
from fencepost.clusters.reference.codec.record_definitions import definitions
from fencepost.clusters.reference.process_settings import settings_of
from fencepost.clusters.reference.shell.formatting import format_directory, looked_at, new_id
from fencepost.clusters.reference.specs import level_of, release_like
from fencepost.clusters.system import Wanted
from fencepost.history.failure import UsageError

_PROGRAM: Final = "fencepost.clusters.reference"
HERE: Final = (sys.executable, "-m", _PROGRAM)
"""The command of a node on this Python."""
_PACKAGES: Final = ("fencepost.clusters", "fencepost.history")
"""The packages of ours that a node imports."""
_DISTRIBUTIONS: Final = ("kio", "crc32c", "typing_extensions")
"""The distributions of others' packages, likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePrepared:
    """`clusters.system.Prepared`: nothing is fetched; the nodes run on this Python, or a copy."""

    java: Java
    version: str
    level: int
    portable: PortableProgram | None = None
    """The nodes' program where they do not see this Python."""

    @property
    def files_read(self) -> tuple[Path, ...]:
        """The copy of this Python, and the program."""
        assert self.portable is not None, "asked for where nodes do not see this machine's files"
        return self.portable.directories

    carried = files_read

    @property
    def command(self) -> tuple[str, ...]:
        """The command of a node, but for its arguments."""
        return HERE if self.portable is None else self.portable.command


class ReferenceCluster(QuorumProcesses):
    """`clusters.kafka_port.BrokerCluster` with all the abilities of a cluster of processes.

    `rules_off`: the rules that its nodes do not keep. `command`: what runs a node.
    """

    def __init__(
        self,
        spec: KafkaSpec,
        *,
        site: Site,
        rules_off: Sequence[str] = (),
        command: Sequence[str] = HERE,
    ) -> None:
        if spec.quorum is not Quorum.STATIC:
            raise UsageError("the reference cluster has static quorums only")
        self._level = level_of(spec)
        self._rules_off = tuple(rules_off)
        super().__init__(spec, site=site, software=lambda nodes: _software(nodes, command=command))

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test."""
        found = {"cluster": "reference", "metadata_version": str(self._level)}
        return found | ({"rules_off": ", ".join(self._rules_off)} if self._rules_off else {})

    def _properties(self, node: ProcessNode, *, nodes: tuple[KafkaNode, ...]) -> dict[str, str]:
        return settings_of(
            self._spec,
            self._listed[node.name],
            nodes=nodes,
            data=node.data,
            hosts=node.place.directory / HOSTS,
            kept=node.place.directory / KEPT,
            rules_off=self._rules_off,
            route=self._route,
        )

    def _definitions(self) -> Definitions:
        return definitions()

    def _await_quorum(self) -> None:
        """Do nothing: a broker waits for its controllers on its own."""


class ReferenceDriver:
    """`clusters.system.Driver`."""

    cluster = ReferenceCluster

    def prepare(
        self, spec: KafkaSpec, wanted: Wanted, say: Callable[[str], None]
    ) -> ReferencePrepared:
        """Find a Java for the checks; copy this Python if nodes run where it is not."""
        return ReferencePrepared(
            java=find_java(),
            version=release_like(spec),
            level=level_of(spec),
            portable=portable_nodes(say) if wanted.portable else None,
        )

    def build(
        self, spec: KafkaSpec, prepared: ReferencePrepared, *, site: Site, rules_off: Sequence[str]
    ) -> ReferenceCluster:
        """The cluster, with nothing of it running yet."""
        return ReferenceCluster(spec, site=site, rules_off=rules_off, command=prepared.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReferenceSoftware(KafkaFiles):
    """`clusters.processes.node.Software` of one node."""

    node: KafkaNode
    cluster_id: str
    program: Sequence[str]
    first_directory_id: str | None = None

    def command(self, directory: Path) -> list[str]:
        """The interpreter's command line; its properties name the hosts file."""
        return [*self.program, "--config", str(directory / PROPERTIES)]

    def format(self, data: Path, *, directory_id: str | None) -> None:
        """Format as its own tool does."""
        format_directory(
            data,
            node_id=self.node.node_id,
            cluster_id=self.cluster_id,
            directory_id=None if directory_id is None else int(directory_id),
        )

    def format_command(self, directory: Path) -> list[str] | None:  # noqa: ARG002 -- the port's
        """None: what `format` makes is what its tool makes."""
        return None

    def directory_id(self, data: Path) -> str | None:
        """The id of a formatted directory, in decimal digits; None if it is not formatted."""
        meta = looked_at(data).meta
        return None if meta is None else str(meta.directory_id)


def _software(
    nodes: tuple[KafkaNode, ...], *, command: Sequence[str]
) -> dict[NodeName, _ReferenceSoftware]:
    cluster_id = new_id()
    return {
        node.name: _ReferenceSoftware(node=node, cluster_id=cluster_id, program=command)
        for node in nodes
    }


def portable_nodes(say: Callable[[str], None]) -> PortableProgram:
    """Return the program of nodes of our own, for where this Python is not, made if need be."""
    return portable_program(
        f"{_PROGRAM}.__main__",
        packages=_PACKAGES,
        distributions=_DISTRIBUTIONS,
        progress=say,
    )


DRIVER: Final = ReferenceDriver()
