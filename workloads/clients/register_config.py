"""The configuration of the register client: a JSON file by the harness, next to its log."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from fencepost.history.clock import Clock
from fencepost.workloads.register_spec import OperationWeights, RegisterSpec

_PROCESSES_MAX = 1_000_000
"""Logical clients that a process can have been."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterConfig:
    """The configuration of a register client."""

    client: str
    """The name of its log and its journal."""
    number: int
    """Its place among the clients."""
    process: int
    """The number of its first logical client."""
    process_stride: int
    """The step from the number of a logical client to that of the next."""
    raw: str
    """The directory to record into."""
    origin_ns: int
    """The origin of the run's clock."""
    servers: tuple[str, ...]
    """The servers' client ports, `host:port`, in the order in which it turns to them."""
    spec: RegisterSpec
    seed: int
    """The run's seed for the workload; a client draws from (seed, process)."""
    earlier: int = 0
    """Processes of this name that were killed before."""
    result: str = ""
    """Of a final reader: the path of the JSON file that lists the keys that it read."""
    deadline_ns: int = 0
    """Of a final reader: the time on the run's clock to give up at."""

    @property
    def clock(self) -> Clock:
        """The run's clock."""
        return Clock(self.origin_ns)

    @property
    def writer(self) -> str:
        """The name under which this process records."""
        return f"{self.client}.{self.earlier}" if self.earlier else self.client

    def process_of(self, generation: int) -> int:
        """Return the number of a logical client of this process."""
        return self.process + (self.earlier * _PROCESSES_MAX + generation) * self.process_stride


def write_register_config(path: Path, config: RegisterConfig) -> None:
    """Write a client's configuration for `read_register_config`."""
    path.write_text(json.dumps(asdict(config), indent=2) + "\n")


def read_register_config(path: Path) -> RegisterConfig:
    """Return a register client's configuration."""
    data = json.loads(path.read_text())
    spec = data["spec"]
    return RegisterConfig(
        **data
        | {
            "servers": tuple(data["servers"]),
            "spec": RegisterSpec(**spec | {"mix": OperationWeights(**spec["mix"])}),
        }
    )
