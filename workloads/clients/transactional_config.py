"""The configurations of transactional producers and watchers of stable offsets: JSON files."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from fencepost.workloads.clients.config import ClientConfig
from fencepost.workloads.clients.java_gateway import JavaProgram
from fencepost.workloads.generators.intents import Intent

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class IntakeConfig:
    """The configuration of the records that a transactional producer takes in."""

    group: str
    """The group whose offsets are sent with transactions: all instances of a transactional id share
    it.
    """
    process: int
    """The process number under which the first instance's polls are recorded."""
    records_max: int
    """The largest number of records of one transaction."""
    settings: dict[str, str]
    """The settings for librdkafka's consumer, but for its client.id and group.id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactorConfig:
    """The configuration of a transactional producer."""

    common: ClientConfig
    java: JavaProgram | None
    """The Java to run Kafka's own client in; None: librdkafka."""
    transactional_id: str
    rate: float
    """Transactions a second; 0: as fast as it can."""
    transaction_count_max: int | None
    stop_on_failure: bool
    records_per_transaction: int
    open_ms: int
    pattern: tuple[Intent, ...]
    abort_share: float
    value_bytes: int
    delivery_timeout_ms: int
    end_timeout_ms: int
    intake: IntakeConfig | None = None
    """The intake; None: it takes nothing in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsConfig:
    """The configuration of a watcher of stable offsets."""

    client: str
    raw: str
    """The directory to record into."""
    origin_ns: int
    """The origin of the run's clock."""
    keys: tuple[str, ...]
    settings: dict[str, str]
    """The settings for librdkafka."""
    due_ns: int
    """The time on the run's clock at which every transaction must have ended."""
    deadline_ns: int
    """The time on the run's clock to give up at."""
    result: str
    """The path of the JSON file that lists the keys whose last stable offset is the end."""


def write_as(kind: type[T], path: Path, config: T) -> None:
    """Write a configuration for `read_as`."""
    path.write_bytes(TypeAdapter(kind).dump_json(config, indent=2) + b"\n")


def read_as(kind: type[T], path: Path) -> T:
    """Return a configuration of this kind."""
    return TypeAdapter(kind).validate_json(path.read_bytes())
