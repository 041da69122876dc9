"""The configuration of the metadata client: a JSON file by the harness, next to its log."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.history.clock import Clock
from fencepost.workloads.metadata_spec import MetadataSpec, ReadingClient


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataConfig:
    """The configuration of a metadata client."""

    client: str
    """The name of its log, its journals, and its `client.id` at the brokers."""
    process: int
    """The number of its first writer; the other writers and then the readers follow."""
    raw: str
    """The directory to record into."""
    origin_ns: int
    """The origin of the run's clock."""
    brokers: Mapping[NodeName, Address]
    """The address at which clients find each of them."""
    spec: MetadataSpec
    seed: int
    """The run's seed for the workload; a writer draws from (seed, process)."""

    @property
    def clock(self) -> Clock:
        """The run's clock."""
        return Clock(self.origin_ns)


def write_metadata_config(path: Path, config: MetadataConfig) -> None:
    """Write a client's configuration for `read_metadata_config`."""
    path.write_text(json.dumps(asdict(config), indent=2) + "\n")


def read_metadata_config(path: Path) -> MetadataConfig:
    """Return a metadata client's configuration."""
    data = json.loads(path.read_text())
    brokers = {NodeName(name): (host, port) for name, (host, port) in data["brokers"].items()}
    spec = MetadataSpec(**data["spec"] | {"reader": ReadingClient(data["spec"]["reader"])})
    return MetadataConfig(**data | {"brokers": brokers, "spec": spec})
