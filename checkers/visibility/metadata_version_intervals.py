"""The levels of metadata.version that were raised, and under which brokers promise visibility.

A level promises it if, while it was in force, a broker was told a lowest acknowledged offset at or
above the record that set it (`false_lowest`): a cluster that tells none promises nothing.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa

from fencepost.checkers.metadata.records import MetadataRecord
from fencepost.checkers.metadata.told_offsets import TELLING, told_first
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.sources import Source, source_of

LEVEL: Final = "FeatureLevelRecord"
_FEATURE: Final = "metadata.version"


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedLevel:
    """A level of metadata.version that was raised, and the metadata offsets of its validity."""

    level: int
    """The level as the metadata log states it."""
    begin_offset: int
    end_offset: int


def raised_levels(records: Iterable[MetadataRecord]) -> Iterator[RaisedLevel]:
    """Yield the raised levels of a metadata log in its order."""
    levels = [
        (record.metadata_offset, int(record.value))
        for record in records
        if record.type == LEVEL and record.name == _FEATURE and record.value
    ]
    for (_, before), (offset, level), (end_offset, _) in _neighbours(levels):
        if level > before:
            yield RaisedLevel(level=level, begin_offset=offset, end_offset=end_offset)


def _neighbours(
    levels: Sequence[tuple[int, int]],
) -> Iterator[tuple[tuple[int, int], tuple[int, int], tuple[int, int]]]:
    """Yield each level with the one before it and the one after it."""
    whole = [(-1, 0), *levels, (OPEN_NS, 0)]
    for (before, one), (_, after) in pairwise(pairwise(whole)):
        yield before, one, after


def told_offsets(wire: pa.Table | Source) -> Sequence[tuple[int, int]]:
    """Return the lowest acknowledged offsets that brokers were told, each as (when, offset)."""
    return [
        (row["time_ns"], row["lowest_acknowledged_offset"])
        for batch in source_of(wire)(TELLING)
        for row in told_first(batch).select(["time_ns", "lowest_acknowledged_offset"]).to_pylist()
    ]


def levels_with_visibility(
    levels: Iterable[RaisedLevel], told_offsets: Iterable[tuple[int, int]]
) -> tuple[RaisedLevel, ...]:
    """Return the levels under which brokers promise visibility."""
    told = {lowest for _, lowest in told_offsets}
    return tuple(
        raised
        for raised in levels
        if any(raised.begin_offset <= lowest < raised.end_offset for lowest in told)
    )
