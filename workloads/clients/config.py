"""The configuration of a client process: a JSON file, written by the harness, next to its log."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar

from fencepost.history.clock import Clock


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientConfig:
    """The configuration that every client has."""

    client: str
    """The name of its log, its segments, and its `client.id` at the brokers."""
    process: int
    """The number of its first logical client."""
    process_stride: int
    """The step from the number of a logical client that cannot go on to its successor's."""
    raw: str
    """The directory to record into."""
    origin_ns: int
    """The origin of the run's clock."""
    keys: tuple[str, ...]
    """Every key of the run: the index of a key means the same in each segment."""
    settings: Mapping[str, str]
    """The settings for librdkafka, complete."""
    seed: int
    """The run's seed for the workload; a logical client draws from (seed, process)."""
    earlier: int = 0
    """The number of logical clients that earlier processes of this name have been."""

    @property
    def clock(self) -> Clock:
        """The run's clock."""
        return Clock(self.origin_ns)

    def name(self, generation: int) -> str:
        """Return the name under which the logical client of this generation records."""
        number = self.earlier + generation
        return f"{self.client}.{number}" if number else self.client

    def process_of(self, generation: int) -> int:
        """Return the process number of that logical client."""
        return self.process + (self.earlier + generation) * self.process_stride


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerConfig:
    """The configuration of a producer."""

    common: ClientConfig
    rate: float
    """Records a second; 0: as fast as it can."""
    value_bytes: int
    batch_max: int
    """Records handed to librdkafka at a time."""
    in_flight_max: int
    """Records whose end is not known yet."""
    flush_ms: int
    """The time to wait for the ends of sends after SIGTERM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerConfig:
    """The configuration of a consumer."""

    common: ClientConfig
    subscribe: bool
    """True: in the group; False: it assigns itself every key."""
    reassign_s: float
    """Mean time between two assigns; 0: assign once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalReaderConfig:
    """The configuration of a final reader."""

    common: ClientConfig
    share: tuple[int, ...]
    """The indices of the keys that it reads."""
    deadline_ns: int
    """The time on the run's clock to give up at."""
    result: str
    """The path of the JSON file that lists the keys it read completely."""


Config = TypeVar("Config", ProducerConfig, ConsumerConfig, FinalReaderConfig)


def write_config(path: Path, config: ProducerConfig | ConsumerConfig | FinalReaderConfig) -> None:
    """Write a client's configuration for `read_config`."""
    path.write_text(json.dumps(asdict(config), indent=2) + "\n")


def read_config(path: Path, kind: type[Config]) -> Config:
    """Return a client's configuration of this kind."""
    data = _tuples(json.loads(path.read_text()))
    return kind(**{**data, "common": ClientConfig(**data["common"])})


def _tuples(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _tuples(value) for key, value in data.items()}
    return tuple(map(_tuples, data)) if isinstance(data, list) else data
