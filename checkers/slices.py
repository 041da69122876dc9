"""The part of a run's tables that one call of a kernel is given.

A table of a long night, or of a wide cluster, does not fit in a task. Most rules of the control
plane are about one partition or one broker, so their checks are called slice by slice, each with
the rows that can concern its partitions or its brokers, and answer for these alone. A short run is
one slice.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fencepost.history.schema import RECORD_BUCKET_COUNT
from fencepost.history.writer import bucket_of

_BROKER: Final = "broker "


class Split(StrEnum):
    """The subject by which the tables of a check are cut."""

    WHOLE = "whole"
    """They are not: it is called once."""
    RECORDS = "records"
    """By key, as `records` and `replica_records` are spread over their files."""
    OFFSETS = "offsets"
    """By key and, where a file of theirs is large, by stretches of offsets."""
    PARTITIONS = "partitions"
    """By topic-partition. All that is about brokers and the quorum is in every slice."""
    BROKERS = "brokers"
    """By broker id. No records of partitions and none of their requests are in any slice."""


@dataclass(frozen=True, slots=True)
class Slice:
    """One of `count` slices."""

    split: Split = Split.WHOLE
    number: int = 0
    count: int = 1
    first_offset: int = 0
    end_offset: int | None = None
    """Of a key's records, it has those from the first offset to before this one."""

    @property
    def is_whole(self) -> bool:
        """Return whether it has all rows of the tables of the cluster."""
        return self.split is Split.WHOLE or self.count == 1

    def has_partition(self, key: str) -> bool:
        """Return whether a topic-partition is in it."""
        match self.split:
            case Split.RECORDS | Split.OFFSETS:
                return bucket_of(key) == self.number
            case Split.PARTITIONS:
                return zlib.crc32(key.encode()) // RECORD_BUCKET_COUNT % self.count == self.number
            case Split.WHOLE:
                return True
            case Split.BROKERS:
                return False

    def has_broker(self, broker_id: int) -> bool:
        """Return whether a broker id is in it."""
        return self.split is not Split.BROKERS or broker_id % self.count == self.number


WHOLE: Final = Slice()
OF_KEYS: Final = (Split.RECORDS, Split.OFFSETS)
"""The splits whose slices are numbered as the files of `records` are."""
RECORDS_A_ROW: Final = 2
"""A record takes that much less memory than a request does: as often as many are in a slice."""
SLICE_ROWS: Final = 160_000
"""The rows of its largest table that a run which is not cut may have, and about those of a slice:
some 200 MB, with the log of record and once they are requests and answers."""


def slice_count(rows: int, slice_rows: int) -> int:
    """Return how many slices of at most so many rows hold all rows: one at least."""
    return max(1, -(-rows // slice_rows))


def slices_of(split: Split, count: int) -> Iterator[Slice]:
    """Yield the slices of a split into `count`, in order."""
    return (Slice(split, number, count) for number in range(count))
