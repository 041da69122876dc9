"""All that has to be there before the first process of such a cluster starts: an ensemble's."""

from dataclasses import dataclass
from pathlib import Path

from clusters.provision.java import Java
from clusters.zookeeper.prepared import ZooKeeperPrepared

__all__ = ["ReferenceZooKeeperPrepared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceZooKeeperPrepared:
    """`clusters.system.Prepared`: the brokers run on this Python."""

    ensemble: ZooKeeperPrepared
    version: str
    """The release of Kafka whose expectations hold of it."""
    level: int
    """The inter-broker protocol."""

    @property
    def java(self) -> Java:
        """The Java of the servers, and for the checks."""
        return self.ensemble.java

    @property
    def files_read(self) -> tuple[Path, ...]:
        """Never asked for: where nodes do not share this machine's files there is no Python."""
        raise NotImplementedError

    carried = files_read
