"""Reference clusters of the ZooKeeper generation, as processes: an ensemble, and our brokers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.place import Site
from fencepost.clusters.kafka.configuration import HOSTS, PROPERTIES, KafkaNode, refuse_reserved
from fencepost.clusters.kafka_port import Role
from fencepost.clusters.kafka_zookeeper.processes import BrokersOnZooKeeper, UnformattedFiles
from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.node import ProcessNode, Software
from fencepost.clusters.provision.files_read import topmost
from fencepost.clusters.provision.java import Java
from fencepost.clusters.provision.portable import PortableProgram
from fencepost.clusters.reference.driver import HERE, portable_nodes
from fencepost.clusters.reference.shell.zk_properties import ID, KNOWN
from fencepost.clusters.reference_zookeeper.configuration import properties
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.system import Wanted
from fencepost.clusters.zookeeper.driver import DRIVER as ENSEMBLES
from fencepost.clusters.zookeeper.prepared import ZooKeeperPrepared
from fencepost.history.failure import HarnessError

_NO_ID: Final = "-1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceZooKeeperPrepared:
    """`clusters.system.Prepared`: the brokers run on this Python, or on a copy."""

    ensemble: ZooKeeperPrepared
    version: str
    """The release of Kafka whose expectations hold of it."""
    level: int
    """The inter-broker protocol."""
    portable: PortableProgram | None = None
    """The brokers' program where they do not see this Python."""

    @property
    def java(self) -> Java:
        """The Java of the servers, and for the checks."""
        return self.ensemble.java

    @property
    def files_read(self) -> tuple[Path, ...]:
        """Return what the servers' JVMs read, and the brokers' program."""
        return topmost([*self.ensemble.files_read, *self._program])

    @property
    def carried(self) -> tuple[Path, ...]:
        """Return what the servers are given, and the brokers' program."""
        return (*self.ensemble.carried, *self._program)

    @property
    def command(self) -> tuple[str, ...]:
        """The command of a broker, but for its arguments."""
        return HERE if self.portable is None else self.portable.command

    @property
    def _program(self) -> tuple[Path, ...]:
        return () if self.portable is None else self.portable.directories


class ReferenceZooKeeperCluster(BrokersOnZooKeeper):
    """`clusters.kafka_port.BrokerCluster` with all the abilities of a cluster of processes.

    `rules_off`: the rules that its brokers do not keep.
    """

    _spec: ReferenceZooKeeperSpec

    def __init__(
        self,
        spec: ReferenceZooKeeperSpec,
        *,
        prepared: ReferenceZooKeeperPrepared,
        site: Site,
        rules_off: Sequence[str] = (),
    ) -> None:
        self._prepared = prepared
        self._rules_off = tuple(rules_off)
        super().__init__(spec, prepared=prepared.ensemble, version=prepared.version, site=site)

    @property
    def versions(self) -> Mapping[str, str]:
        """Return the versions under test."""
        zookeeper, java = self._prepared.ensemble.release, self._prepared.java
        found = {
            "cluster": "reference-zookeeper",
            "inter_broker_protocol": self._spec.protocol_level,
            "zookeeper": zookeeper.version,
            "zookeeper_jars_sha256": zookeeper.digest,
            "java": java.version,
            "java_build": java.build,
            "java_source": java.source,
        }
        return found | ({"rules_off": ", ".join(self._rules_off)} if self._rules_off else {})

    def _await_session_end(self, broker: NodeName) -> None:
        """Wait for it if the broker has a given id; one that has none finds it taken meanwhile."""
        now = self._setting_changes.over(self._nodes[broker].settings, broker)
        if now[ID] != _NO_ID:
            super()._await_session_end(broker)

    def _refuse_settings(self, settings: Mapping[str, str]) -> None:
        """Raise HarnessError for properties that no step may change; a broker's id may be."""
        super()._refuse_settings({name: one for name, one in settings.items() if name != ID})
        if unknown := sorted(settings.keys() - KNOWN):
            raise HarnessError(
                f"the reference brokers do not know the properties {', '.join(unknown)}"
            )

    def _await_role(self, role: str, members: Sequence[NodeName]) -> None:
        """A broker waits for its servers on its own: it starts while they do."""
        if role == Role.BROKER:
            super()._await_role(Role.ZOOKEEPER, self._names(Role.ZOOKEEPER))
            super()._await_role(role, members)

    def _equip(self, nodes: tuple[KafkaNode, ...]) -> Mapping[NodeName, Software]:
        software = _BrokerSoftware(program=self._prepared.command)
        return {node.name: software for node in nodes}

    def _properties(self, node: ProcessNode, *, nodes: tuple[KafkaNode, ...]) -> dict[str, str]:  # noqa: ARG002 -- brokers find each other by their znodes
        return properties(
            self._spec,
            self._listed[node.name],
            servers=self._ensemble.servers.values(),
            data=node.data,
            hosts=node.place.directory / HOSTS,
            rules_off=self._rules_off,
            route=self._route,
        )


class ReferenceZooKeeperDriver:
    """`clusters.system.Driver`."""

    cluster = ReferenceZooKeeperCluster

    def prepare(
        self, spec: ReferenceZooKeeperSpec, wanted: Wanted, say: Callable[[str], None]
    ) -> ReferenceZooKeeperPrepared:
        """Prepare the release of the ensemble; copy this Python if brokers run where it is not."""
        refuse_reserved(spec.settings, spec.broker_settings)
        return ReferenceZooKeeperPrepared(
            ensemble=ENSEMBLES.prepare(spec.ensemble, wanted, say),
            version=spec.release,
            level=spec.inter_broker_protocol,
            portable=portable_nodes(say) if wanted.portable else None,
        )

    def build(
        self,
        spec: ReferenceZooKeeperSpec,
        prepared: ReferenceZooKeeperPrepared,
        *,
        site: Site,
        rules_off: Sequence[str],
    ) -> ReferenceZooKeeperCluster:
        """The cluster, with nothing of it running yet."""
        return ReferenceZooKeeperCluster(spec, prepared=prepared, site=site, rules_off=rules_off)


DRIVER: Final = ReferenceZooKeeperDriver()


@dataclass(frozen=True, slots=True, kw_only=True)
class _BrokerSoftware(UnformattedFiles):
    """`clusters.processes.node.Software` of one broker."""

    program: Sequence[str]
    """The command of a broker, but for its arguments."""

    def command(self, directory: Path) -> list[str]:
        """The interpreter's command line; its properties name the hosts file."""
        return [*self.program, "--config", str(directory / PROPERTIES)]
