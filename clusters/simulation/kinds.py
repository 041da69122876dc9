"""Tables by kind of message: who wants to see which of them on a link."""

from collections.abc import Iterable
from typing import Final

KIND_COUNT: Final = 256
"""Kinds of messages are below it."""
NOTHING: Final = bytes(KIND_COUNT)
"""The table of who wants to see no kind at all."""
WANTED: Final = 1
"""In `Link.wanted`: the interceptor alone wants this kind."""
SEEN: Final = 2
"""In `Link.wanted`: a watcher is told of this kind, and nothing else is to be done to it."""
UNUSUAL: Final = 4
"""In `Link.wanted`: from here on the network sees to it; below, the loop does after all looks."""
EVERYTHING: Final = bytes([UNUSUAL]) * KIND_COUNT


def table_of(kinds: Iterable[int]) -> bytes:
    """Return, by kind, whether it is one of these."""
    found = bytearray(KIND_COUNT)
    for kind in kinds:
        found[kind] = 1
    return bytes(found) if any(found) else NOTHING


def wanted_by(table: bytes | bytearray, seen: bytes) -> bytes:
    """Return by kind: 1 for an interceptor's, SEEN for what is only told of, 3 for both."""
    both = int.from_bytes(table, "little") | int.from_bytes(seen, "little") << 1
    return both.to_bytes(KIND_COUNT, "little")
