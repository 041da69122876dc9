"""The reader of open histories for the kernels: which row groups hold which keys, and their rows.

A large key has row groups of its own and is read by many tasks; its file is verified by one of
them, and the others are not to be believed before it is. The driver looks at Parquet's statistics,
not at the rows.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from fencepost.checkers.linearizability.slabs import KeyRowGroup
from fencepost.checkers.runner.tables import SealedFile, opened, stretches_of
from fencepost.history.failure import HarnessError

_TABLE: Final = "model_operations"
_WIDEST: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyGroups:
    """Row groups that hold one key, or one that holds several, whole."""

    key: str | None
    """None: several."""
    parts: tuple[KeyRowGroup, ...]

    @property
    def row_count(self) -> int:
        """Operations."""
        return sum(part.row_count for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    """The content of a file by its statistics."""

    file: SealedFile
    keys: tuple[KeyGroups, ...]
    row_count: int
    first_index: int | None
    """None if there are no rows."""
    last_index: int | None


def verify(file: SealedFile) -> None:
    """Raises HarnessError, naming the file, if it is not the one that was sealed."""
    with opened(file, _TABLE):
        pass


def outline(file: SealedFile) -> Outline:
    """Return the content of the file. Raises HarnessError, naming it, if it cannot be read."""
    with opened(_unverified(file), _TABLE) as parquet:
        groups = [_Group(parquet, number) for number in range(parquet.num_row_groups)]
        keys: list[KeyGroups] = []
        for group in groups:
            key, part = group.key(), group.part()
            if keys and key is not None and keys[-1].key == key:
                keys[-1] = KeyGroups(key=key, parts=(*keys[-1].parts, part))
            else:
                keys.append(KeyGroups(key=key, parts=(part,)))
        indices = [group.bounds("index") for group in groups]
    _refuse_split([one.key for one in keys if one.key is not None], file)
    return Outline(
        file=file,
        keys=tuple(keys),
        row_count=sum(one.row_count for one in keys),
        first_index=min((first for first, _ in indices), default=None),
        last_index=max((last for _, last in indices), default=None),
    )


def rows_of_groups(
    file: SealedFile, groups: Sequence[int], columns: Sequence[str]
) -> Iterator[tuple[int, pa.Table]]:
    """Yield each of these row groups with its number, words dictionary-encoded.

    Memory holds one. Raises HarnessError, naming the file, if it cannot be read.
    """
    with opened(_unverified(file), _TABLE) as parquet:
        for group in groups:
            yield group, parquet.read_row_group(group, columns=list(columns), use_threads=False)


def keys_of_group(
    file: SealedFile, group: int, columns: Sequence[str]
) -> Iterator[tuple[str, pa.Table]]:
    """Yield each key of a row group that holds several, with all its rows.

    `columns` include the key. Raises HarnessError, naming the file, if it cannot be read.
    """
    for _, rows in rows_of_groups(file, [group], columns):
        yield from stretches_of(rows.combine_chunks())


@dataclass(frozen=True, slots=True)
class _Group:
    """The statistics of a row group; without statistics its rows are read."""

    parquet: Any
    number: int

    def key(self) -> str | None:
        first, last = self.bounds("key")
        return first if first == last else None

    def part(self) -> KeyRowGroup:
        versions = [one for name in ("expected", "version") for one in self.bounds(name)]
        known = [one for one in versions if one is not None]
        return KeyRowGroup(
            group=self.number,
            row_count=self.parquet.metadata.row_group(self.number).num_rows,
            low=min(known, default=_WIDEST),
            # An operation that expects a version may make the next, as does an append at an offset.
            high=max(known, default=-_WIDEST) + 1,
        )

    def bounds(self, name: str) -> tuple[Any, Any]:
        """Return the least and the greatest of a column, None if all of it is null."""
        place = self.parquet.schema_arrow.get_field_index(name)
        found = self.parquet.metadata.row_group(self.number).column(place).statistics
        if found is not None and found.has_min_max:
            return found.min, found.max
        values = self.parquet.read_row_group(self.number, columns=[name], use_threads=False)[name]
        known = sorted(set(values.drop_null().to_pylist()))
        return (known[0], known[-1]) if known else (None, None)


def _refuse_split(keys: Sequence[str], file: SealedFile) -> None:
    if len(set(keys)) < len(keys):
        twice = next(key for key in keys if list(keys).count(key) > 1)
        raise HarnessError(f"{file.path} is not sorted by key: {twice} comes twice")


def _unverified(file: SealedFile) -> SealedFile:
    return SealedFile(path=file.path, digest="")
