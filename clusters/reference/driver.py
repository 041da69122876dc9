"""Prepares and builds reference clusters as processes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from clusters.abilities import Route
from clusters.hosts.place import Host
from clusters.kafka_port import KafkaSpec
from clusters.provision.java import Java, find_java
from clusters.reference.processes import ReferenceCluster
from clusters.reference.specs import level_of, release_like
from clusters.system import Wanted
from history.clock import Clock

__all__ = ["DRIVER", "ReferenceDriver", "ReferencePrepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferencePrepared:
    """`clusters.system.Prepared`: nothing is fetched; the nodes run on this Python."""

    java: Java
    version: str
    level: int

    @property
    def files_read(self) -> tuple[Path, ...]:
        """Never asked for: where nodes do not share this machine's files there is no Python."""
        raise NotImplementedError

    carried = files_read


class ReferenceDriver:
    """`clusters.system.Driver`."""

    cluster = ReferenceCluster

    def prepare(
        self, spec: KafkaSpec, _wanted: Wanted, _say: Callable[[str], None]
    ) -> ReferencePrepared:
        """Prepare nothing but a Java for the checks."""
        return ReferencePrepared(java=find_java(), version=release_like(spec), level=level_of(spec))

    def build(
        self,
        spec: KafkaSpec,
        _prepared: ReferencePrepared,
        *,
        host: Host,
        directory: Path,
        clock: Clock,
        rules_off: Sequence[str],
        port_base: int | None,
        route: Route,
    ) -> ReferenceCluster:
        """The cluster, with nothing of it running yet."""
        return ReferenceCluster(
            spec,
            host=host,
            directory=directory,
            clock=clock,
            rules_off=rules_off,
            port_base=port_base,
            route=route,
        )


DRIVER: Final = ReferenceDriver()
