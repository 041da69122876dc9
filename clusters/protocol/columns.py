"""Pieces of rows that many APIs share: topics, errors, ids, as the table `wire` writes them."""

from base64 import urlsafe_b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from kio.schema.errors import ErrorCode

from fencepost.clusters.protocol.record_batches import Stop, batch_at

Parts = tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""A frame's own columns, and its items."""

METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = urlsafe_b64encode(UUID(int=1).bytes).decode().rstrip("=")
"""Fixed by KIP-631; it never stands in a mapping of topics."""


def uuid_text(value: UUID | None) -> str | None:
    """Return the id as Kafka writes it: 22 characters of URL-safe base 64; None if None (zero)."""
    return None if value is None else urlsafe_b64encode(value.bytes).decode().rstrip("=")


def topic_columns(topic: Any) -> dict[str, Any]:
    """Return the topic's name or id, whichever this version of its API states."""
    columns: dict[str, Any] = {}
    for attribute in ("topic_name", "topic", "name"):
        if (name := getattr(topic, attribute, None)) is not None:
            columns["topic"] = str(name)
            break
    if (topic_id := uuid_text(getattr(topic, "topic_id", None))) is not None:
        columns["topic_id"] = topic_id
        if topic_id == METADATA_TOPIC_ID:
            columns["topic"] = METADATA_TOPIC
    return columns


def partition_items(
    topics: Iterable[Any], *, field: str = "partitions"
) -> Iterator[tuple[dict[str, Any], Any]]:
    """Yield (columns of topic and partition, the partition) for each partition of these topics.

    A partition is an entity or, in some APIs, only its number.
    """
    for topic in topics:
        shared = topic_columns(topic)
        for partition in getattr(topic, field):
            yield shared | {"partition": _index(partition)}, partition


def error_name(code: ErrorCode) -> str:
    """Return the name as Kafka writes it: "NONE", "INELIGIBLE_REPLICA"."""
    return code.name.upper()


def failed(response: Any) -> dict[str, Any]:
    """Return the error of a response, or of an item of one."""
    return {"error": error_name(response.error_code)}


def carried(records: bytes | None) -> str:
    """Return in words what a field of record batches carries: by their headers alone."""
    data = bytes(records or b"")
    count = at = 0
    while at < len(data) and not isinstance(found := batch_at(data, at), Stop):
        count += found.record_count
        at += found.size_bytes
    rest = len(data) - at
    return f"{count} records" if rest <= 0 else f"{count} records and {rest} B"


def _index(partition: Any) -> int:
    if isinstance(partition, int):
        return int(partition)
    for attribute in ("partition_index", "partition", "index", "partition_id"):
        if (index := getattr(partition, attribute, None)) is not None:
            return int(index)
    raise AssertionError(partition)
