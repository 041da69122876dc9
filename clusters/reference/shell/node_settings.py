"""The settings of a node's process, as its properties file states them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.reference.nodes.configuration import Configuration
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.shell.property_values import Address

HOSTS: Final = "fencepost.hosts.file"
KEPT: Final = "fencepost.metadata.kept.dir"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSettings:
    """The settings of a process: its node, and what of the machine it uses."""

    configuration: Configuration
    """Without the cluster's id, which the disk says."""
    rules: Rules
    bound: Mapping[str, Address]
    """The addresses on which it listens, by the listener's name."""
    controller_listener: str
    replication_listener: str
    """Brokers find each other by it."""
    voters: Mapping[int, Address]
    is_broker: bool
    """False of a node that is a controller alone."""
    log_directories: tuple[Path, ...]
    metadata_directory: Path
    hosts_file: Path | None
    """The file in which names of other nodes are looked up before any other source."""
    kept_directory: Path | None = None
    """The directory for what is cut off the metadata log; None: it is deleted."""
    zookeepers: tuple[Address, ...] = ()
    """The servers of the ensemble, of a node of the ZooKeeper generation."""
