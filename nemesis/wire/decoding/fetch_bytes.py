"""A follower's Fetch read where its bytes stand: who fetches, and which partitions it names.

To decode a Fetch whole takes a hundred times as long as to pass it on, and of nearly all of them
nobody wants to know more than whether they name the replica and the partitions that those before
them did. Since version 15 the replica's id and epoch are a tagged field (KIP-903), the last one of
the last structure: 15 bytes at the end of the frame. The partitions stand behind fields of fixed
size. What was read is for comparing alone, and so is left as bytes.
"""

from typing import Final

from clusters.protocol.varints import VarintError, read_unsigned
from nemesis.wire.frames import Header

__all__ = ["named_partitions", "replica_state"]

_VERSIONS: Final = range(15, 19)
"""Those whose layout this is: from the one that states epochs to the latest there is."""
_STATE_BYTES: Final = 15
_STATE_BEGIN: Final = b"\x01\x0d"
"""Tag 1, of 13 bytes: replica id (4), replica epoch (8), no tagged fields (1)."""
_CLIENT_ID_AT: Final = 14
"""Behind length, API key, version, correlation id and the length of the client id."""
_TOPICS_AFTER: Final = 21
"""Maximum wait, minimum and maximum bytes, isolation level, session id and session epoch."""
_ID_BYTES: Final = 16
_INDEX_BYTES: Final = 4
_PARTITION_BYTES: Final = 32
"""Index, leader epoch, fetch offset, last fetched epoch, log start offset, maximum bytes."""
_DIRECTORY_BEGIN: Final = b"\x01\x00\x10"
"""One tagged field: tag 0, of 16 bytes, the id of the replica's directory (KIP-853)."""
_DIRECTORY_BYTES: Final = 19


def replica_state(header: Header, frame: bytes) -> bytes:
    """The replica's id and epoch as the frame writes them; empty if it names no epoch."""
    state = frame[-_STATE_BYTES:]
    stated = header.api_version in _VERSIONS and state.startswith(_STATE_BEGIN)
    return state if stated else b""


def named_partitions(header: Header, frame: bytes) -> list[bytes]:
    """The topic id and index of each partition that it names, as it writes them.

    None for versions without epochs. What cannot be read counts as one partition, of no bytes.
    """
    if header.api_version not in _VERSIONS:
        return []
    try:
        client_size = int.from_bytes(frame[_CLIENT_ID_AT - 2 : _CLIENT_ID_AT], signed=True)
        at = _behind_tags(frame, _CLIENT_ID_AT + max(client_size, 0))
        return _named(frame, at + _TOPICS_AFTER)
    except (IndexError, VarintError):
        return [b""]


def _named(frame: bytes, at: int) -> list[bytes]:
    found: list[bytes] = []
    topic_count, at = read_unsigned(frame, at)
    for _ in range(topic_count - 1):
        topic = frame[at : at + _ID_BYTES]
        count, at = read_unsigned(frame, at + _ID_BYTES)
        for _ in range(count - 1):
            found.append(topic + frame[at : at + _INDEX_BYTES])
            at += _PARTITION_BYTES
            # Without a call where it can be: this is done for each partition of each Fetch.
            if not frame[at]:
                at += 1
            elif frame.startswith(_DIRECTORY_BEGIN, at):
                at += _DIRECTORY_BYTES
            else:
                at = _behind_tags(frame, at)
        at = _behind_tags(frame, at)
    return found


def _behind_tags(frame: bytes, at: int) -> int:
    """Where the tagged fields end that begin here."""
    count, at = read_unsigned(frame, at)
    for _ in range(count):
        _, at = read_unsigned(frame, at)
        size, at = read_unsigned(frame, at)
        at += size
    return at
