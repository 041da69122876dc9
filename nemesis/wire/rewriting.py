"""ApiVersions responses that offer less: a version number changed in place, nothing else touched.

The message is not decoded and written again: a field that some later release adds would be lost.
Layout: ApiVersionsResponse.json; its header is version 0 always, so that any client can read it.
"""

import struct
from typing import Final

from clusters.protocol.varints import VarintError, read_unsigned
from nemesis.wire.apis import API_KEYS
from nemesis.wire.decoding.entities import is_version_0
from nemesis.wire.frame import Frame

__all__ = ["lowered"]

_ERROR_END: Final = 10
"""The place behind length, correlation id and error."""
_ENTRY: Final = struct.Struct(">hhh")
_COUNT: Final = struct.Struct(">i")
_FLEXIBLE_FROM: Final = 3


def lowered(frame: Frame, api: str, max_version: int) -> bytes:
    """Return the ApiVersions response, offering `api` up to `max_version` only.

    Never below the lowest version that the target has, which would be one that it cannot read. A
    response that does not offer the API, or cannot be read, is as it was.
    """
    data = bytearray(frame.data)
    try:
        flexible = frame.header.api_version >= _FLEXIBLE_FROM
        flexible &= not is_version_0(frame.header, frame.data)
        place = _entry(frame.data, API_KEYS[api], flexible=flexible)
    except (struct.error, VarintError):
        place = None
    if place is not None:
        key, lowest, highest = _ENTRY.unpack_from(data, place)
        _ENTRY.pack_into(data, place, key, lowest, max(lowest, min(highest, max_version)))
    return bytes(data)


def _entry(data: bytes, api_key: int, *, flexible: bool) -> int | None:
    """Return the place at which the entry of this API begins, or None if it has no entry."""
    if flexible:
        coded, at = read_unsigned(data, _ERROR_END)
        count = coded - 1
    else:
        (count,), at = _COUNT.unpack_from(data, _ERROR_END), _ERROR_END + _COUNT.size
    for _ in range(count):
        if _ENTRY.unpack_from(data, at)[0] == api_key:
            return at
        at += _ENTRY.size
        if flexible:
            at = _behind_tags(data, at)
    return None


def _behind_tags(data: bytes, at: int) -> int:
    count, at = read_unsigned(data, at)
    for _ in range(count):
        _, at = read_unsigned(data, at)
        size, at = read_unsigned(data, at)
        at += size
    return at
