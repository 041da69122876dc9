"""The compression of a batch's records; `records` undoes it."""

from enum import IntEnum


class RecordError(Exception):
    """The bytes are not the records that their header promises."""


class Compression(IntEnum):
    """The codecs of Kafka, by their number in a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compression_of(number: int) -> Compression:
    """The codec with this number. Raises RecordError if Kafka has none."""
    try:
        return Compression(number)
    except ValueError:
        raise RecordError(f"compressed with codec {number}, which Kafka does not have") from None
