"""The configuration of the membership client: a JSON file by the harness, next to its log."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.history.clock import Clock
from fencepost.workloads.membership_spec import MembershipSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class MembershipConfig:
    """The configuration of a membership client."""

    client: str
    """The name of its log, its journal, and its `client.id` at the brokers."""
    process: int
    """The number of its first mover; the others follow."""
    raw: str
    """The directory to record into."""
    origin_ns: int
    """The origin of the run's clock."""
    brokers: Mapping[NodeName, Address]
    """The address at which clients find each of them."""
    broker_ids: tuple[int, ...]
    """The brokers on which replicas may be."""
    keys: tuple[str, ...]
    """The keys to be moved, shared out among the movers."""
    spec: MembershipSpec
    seed: int
    """The run's seed for the workload; a mover draws from (seed, process)."""

    @property
    def clock(self) -> Clock:
        """The run's clock."""
        return Clock(self.origin_ns)


_FORMAT = TypeAdapter(MembershipConfig)


def write_membership_config(path: Path, config: MembershipConfig) -> None:
    """Write a client's configuration for `read_membership_config`."""
    path.write_bytes(_FORMAT.dump_json(config, indent=2) + b"\n")


def read_membership_config(path: Path) -> MembershipConfig:
    """Return a membership client's configuration."""
    return _FORMAT.validate_json(path.read_bytes())
