"""A follower's Fetch read where its bytes stand: who fetches, and which partitions it names.

To decode a Fetch whole takes a hundred times as long as to pass it on. Of nearly all of them the
tape only needs to know whether they name the same replica and partitions as those before them.
Since version 15 the replica's id and epoch are a tagged field (KIP-903), the last one of the last
structure: 15 bytes at the end of the frame. The partitions stand behind fields of fixed size. The
values are only compared, and so are left as bytes.

This runs for every Fetch between brokers, which are most frames of a busy cluster: hence the bytes
that are looked at without a call where they are what they nearly always are.
"""

from typing import Final, NamedTuple

from clusters.protocol.varints import VarintError, read_unsigned
from nemesis.wire.frames import Header, behind_tags

__all__ = ["Said", "said_by"]

_VERSIONS: Final = range(15, 19)
"""The versions with this layout: from the first that states epochs to the latest there is."""
_STATE_BYTES: Final = 15
_STATE_BEGIN: Final = b"\x01\x0d"
"""Tag 1, of 13 bytes: replica id (4), replica epoch (8), no tagged fields (1)."""
_CLIENT_ID_AT: Final = 14
"""The place behind length, API key, version, correlation id and the length of the client id."""
_NO_CLIENT_ID: Final = 0xFFFF
_TOPICS_AFTER: Final = 21
"""Maximum wait, minimum and maximum bytes, isolation level, session id and session epoch."""
_ID_BYTES: Final = 16
_INDEX_BYTES: Final = 4
_PARTITION_BYTES: Final = 32
"""Index, leader epoch, fetch offset, last fetched epoch, log start offset, maximum bytes."""
_DIRECTORY_BEGIN: Final = b"\x01\x00\x10"
"""One tagged field: tag 0, of 16 bytes, the id of the replica's directory (KIP-853)."""
_DIRECTORY_BYTES: Final = 19


class Said(NamedTuple):
    """The replica and the partitions of a Fetch, as it writes them."""

    replica: bytes
    """The replica's id and epoch; empty if the Fetch names no epoch."""
    partitions: list[bytes]
    """The topic id and index of each that it names; what cannot be read, as one of no bytes."""


_NOTHING: Final = Said(b"", [])


def said_by(header: Header, frame: bytes) -> Said:
    """Read a Fetch; empty for a version without epochs, or one that is not known."""
    if header.api_version not in _VERSIONS:
        return _NOTHING
    state = frame[-_STATE_BYTES:]
    replica = state if state.startswith(_STATE_BEGIN) else b""
    client_size = frame[_CLIENT_ID_AT - 2] << 8 | frame[_CLIENT_ID_AT - 1]
    at = _CLIENT_ID_AT + (0 if client_size == _NO_CLIENT_ID else client_size)
    try:
        at = at + 1 if not frame[at] else behind_tags(frame, at)
        return Said(replica, _named(frame, at + _TOPICS_AFTER))
    except (IndexError, VarintError):
        return Said(replica, [b""])


def _named(frame: bytes, at: int) -> list[bytes]:
    found: list[bytes] = []
    if frame[at] == 1:
        return found  # none, as in a session in which nothing has changed
    topic_count, at = read_unsigned(frame, at)
    for _ in range(topic_count - 1):
        topic = frame[at : at + _ID_BYTES]
        count, at = read_unsigned(frame, at + _ID_BYTES)
        for _ in range(count - 1):
            found.append(topic + frame[at : at + _INDEX_BYTES])
            at += _PARTITION_BYTES
            if not frame[at]:
                at += 1
            elif frame.startswith(_DIRECTORY_BEGIN, at):
                at += _DIRECTORY_BYTES
            else:
                at = behind_tags(frame, at)
        at = at + 1 if not frame[at] else behind_tags(frame, at)
    return found
