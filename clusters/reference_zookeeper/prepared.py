"""All that has to be there before the first process of such a cluster starts: an ensemble's."""

from dataclasses import dataclass
from pathlib import Path

from clusters.provision.files_read import topmost
from clusters.provision.java import Java
from clusters.provision.portable import PortableProgram
from clusters.reference.driver import HERE
from clusters.zookeeper.prepared import ZooKeeperPrepared

__all__ = ["ReferenceZooKeeperPrepared"]


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
