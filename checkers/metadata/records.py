"""The rows of `history.cluster_schema.METADATA_LOG` as values, those that any check replays."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["LEADER_CHANGE", "MetadataRecord", "records_in"]

LEADER_CHANGE: Final = "LeaderChangeMessage"

_NOTHING: Final = ("NoOpRecord",)
"""Says only that the controller lives, twice a second."""

_COLUMNS: Final = (
    *("node", "snapshot", "metadata_offset", "controller_epoch", "timestamp_ms", "type", "control"),
    *("digest", "topic", "topic_id", "partition", "replicas", "isr", "adding", "removing", "elr"),
    *("last_known_elr", "leader", "leader_epoch", "partition_epoch", "leader_recovery_state"),
    *("broker_id", "broker_epoch", "incarnation_id", "fenced", "in_controlled_shutdown"),
    *("name", "value"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRecord:
    """One record of a metadata log; fields as in METADATA_LOG."""

    node: str
    snapshot: bool
    metadata_offset: int
    controller_epoch: int
    timestamp_ms: int
    type: str
    control: bool
    digest: int
    topic: str | None
    topic_id: str | None
    partition: int | None
    replicas: tuple[int, ...] | None
    isr: tuple[int, ...] | None
    adding: tuple[int, ...] | None
    removing: tuple[int, ...] | None
    elr: tuple[int, ...] | None
    last_known_elr: tuple[int, ...] | None
    leader: int | None
    leader_epoch: int | None
    partition_epoch: int | None
    leader_recovery_state: int | None
    broker_id: int | None
    broker_epoch: int | None
    incarnation_id: str | None
    fenced: bool | None
    in_controlled_shutdown: bool | None
    name: str | None
    value: str | None


def records_in(metadata_log: pa.Table) -> Iterator[MetadataRecord]:
    """Yield the rows of METADATA_LOG that say something, in their order."""
    kept = metadata_log.filter(pc.invert(pc.is_in(metadata_log["type"], pa.array(_NOTHING))))
    for row in kept.select(list(_COLUMNS)).to_pylist():
        yield MetadataRecord(**dict(_values(row.items())))


def _values(items: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in items:
        yield name, tuple(value) if isinstance(value, list) else value
