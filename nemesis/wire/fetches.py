"""The Fetches of followers: who fetches which partitions, and which Fetches tell something new.

A follower names its broker epoch and its partitions thousands of times a second, and they hardly
ever change (KIP-903). So of its Fetches the tape has those that tell something new: another broker
epoch, or a partition that no Fetch under this epoch has named on this connection. A reader of the
tape knows from them since when a leader can know which epoch of which follower.

Only what was passed on untouched counts as told. A frame that a rule holds, drops or answers may
never arrive; it is on the tape for its rule's sake, and what comes after it is news again.

To decode a Fetch whole takes a hundred times as long as to pass it on. So it is read where its
bytes stand. Since version 15 the replica's id and epoch are a tagged field, the last one of the
last structure: 15 bytes at the end of the frame. The partitions stand behind fields of fixed size.
The values are only compared, and so are left as bytes. This runs for every Fetch between brokers,
which are most frames of a busy cluster: hence the bytes that are looked at without a call where
they are what they nearly always are.
"""

from collections.abc import Hashable, Iterable
from typing import Final, NamedTuple

from fencepost.clusters.protocol.varints import VarintError, read_unsigned
from fencepost.nemesis.wire.frames import Header, behind_tags

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


class Fetches:
    """The Fetches of one connection that were passed on."""

    __slots__ = ("_partitions", "_replica")

    def __init__(self) -> None:
        self._replica: Hashable = None
        """The replica and its epoch, as the frames write it; None before the first."""
        self._partitions: set[Hashable] = set()
        """The partitions that were named under this epoch."""

    def tells(self, replica: Hashable, partitions: Iterable[Hashable]) -> bool:
        """Return whether a Fetch by this replica of these partitions tells something new."""
        return replica != self._replica or not self._partitions.issuperset(partitions)

    def told(self, replica: Hashable, partitions: Iterable[Hashable]) -> None:
        """Take note of such a Fetch that was passed on."""
        if replica != self._replica:
            self._replica = replica
            self._partitions.clear()
        self._partitions.update(partitions)


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
