"""The undoing of compression: gzip, snappy in the framing of Java's library or plain, lz4, zstd."""

import struct
from collections.abc import Iterator
from typing import Final

import pyarrow as pa

from fencepost.clusters.protocol.compression import Compression, RecordError
from fencepost.clusters.protocol.varints import VarintError, read_unsigned

_BYTES_MAX: Final = 1 << 30
"""The most bytes that are believed to come out: beyond it, it is a bomb."""

_XERIAL: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER_BYTES: Final = 16
_BLOCK_LENGTH: Final = struct.Struct(">i")


def decompressed(body: bytes, compression: Compression) -> bytes:
    """Return the bytes that were compressed. Raises RecordError if they cannot be had."""
    try:
        if compression is Compression.NONE:
            return body
        if compression is Compression.SNAPPY:
            return _of_snappy(body)
        with pa.CompressedInputStream(pa.BufferReader(body), compression.name.lower()) as stream:
            out: bytes = stream.read(_BYTES_MAX + 1)
    except (pa.ArrowException, OSError, ValueError, struct.error, VarintError) as error:
        raise RecordError(f"not {compression.name.lower()}: {error}") from error
    if len(out) > _BYTES_MAX:
        raise RecordError(f"more than {_BYTES_MAX} bytes when decompressed")
    return out


def _of_snappy(body: bytes) -> bytes:
    """Undo Java clients' blocks (the framing of the xerial library), or librdkafka's plain one."""
    if body.startswith(_XERIAL):
        return b"".join(_block(block) for block in _xerial_blocks(body))
    return _block(body)


def _xerial_blocks(body: bytes) -> Iterator[bytes]:
    position = _XERIAL_HEADER_BYTES
    while position < len(body):
        (length,) = _BLOCK_LENGTH.unpack_from(body, position)
        position += _BLOCK_LENGTH.size
        if not 0 <= length <= len(body) - position:
            raise RecordError(f"a snappy block of {length} bytes, {len(body) - position} are left")
        yield body[position : position + length]
        position += length


def _block(block: bytes) -> bytes:
    # Snappy's preamble is the size of what comes out.
    size, _ = read_unsigned(block, 0)
    if size > _BYTES_MAX:
        raise RecordError(f"a snappy block of {size} bytes")
    out: bytes = pa.decompress(block, decompressed_size=size, codec="snappy", asbytes=True)
    return out
