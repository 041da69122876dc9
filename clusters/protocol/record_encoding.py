"""Records of a batch to bytes; `records` reads them, all of a log at once.

Layout: https://kafka.apache.org/documentation/#record
"""

from collections.abc import Sequence

from fencepost.clusters.protocol.varints import encoded_signed

Header = tuple[bytes, bytes | None]
"""The name and value of a record's header."""


def encoded_record(
    *,
    offset_delta: int,
    timestamp_delta_ms: int = 0,
    key: bytes | None = None,
    value: bytes | None = None,
    headers: Sequence[Header] = (),
) -> bytes:
    """Return a record as it lies in a batch, its length first."""
    body = b"".join(
        (
            b"\x00",
            *(encoded_signed(timestamp_delta_ms), encoded_signed(offset_delta)),
            *(_encoded_bytes(key), _encoded_bytes(value), encoded_signed(len(headers))),
            *(_encoded_bytes(part) for header in headers for part in header),
        )
    )
    return encoded_signed(len(body)) + body


def _encoded_bytes(part: bytes | None) -> bytes:
    return encoded_signed(-1) if part is None else encoded_signed(len(part)) + part
