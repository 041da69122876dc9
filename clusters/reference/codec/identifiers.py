"""Ids of topics, incarnations and directories: integers of 128 bits here, and Kafka's two forms."""

import base64
from functools import lru_cache
from typing import Final
from uuid import UUID

_BYTES: Final = 16
_TEXT_LENGTH: Final = 22
METADATA_TOPIC: Final = "__cluster_metadata"
METADATA_TOPIC_ID: Final = 1
"""Fixed by KIP-631."""


@lru_cache(maxsize=1024)
def text_of(identifier: int) -> str:
    """Return the id as Kafka writes it: 22 characters of URL-safe base 64."""
    return base64.urlsafe_b64encode(identifier.to_bytes(_BYTES))[:_TEXT_LENGTH].decode()


def id_of_text(text: str) -> int:
    """The id in 22 characters. Raises ValueError."""
    found = base64.urlsafe_b64decode(f"{text}==")
    if len(found) != _BYTES:
        raise ValueError(f'"{text}" is not an id of 22 characters')
    return int.from_bytes(found)


def uuid_of(identifier: int) -> UUID | None:
    """Return the id as kio has it; None for "no id"."""
    return UUID(int=identifier) if identifier > 0 else None


def id_of_uuid(found: UUID | None) -> int:
    """The id; -1 for "no id"."""
    return -1 if found is None else found.int
