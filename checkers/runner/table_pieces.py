"""Parts of a file of `records`: where the rows of each key lie in it, and some of them.

A large key is read in pieces, by many tasks, and its file is verified by one of them: what reads a
part here does not compare the digest again. A task that was given an unverified file must not be
believed before the file is (`verified`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pyarrow as pa

from fencepost.checkers.runner.tables import SealedFile, opened, stretches_of
from fencepost.history.failure import HarnessError


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Rows of one key that follow each other in one row group."""

    key: str
    group: int
    """The row group, by number."""
    first: int
    """Its first row, in the row group."""
    count: int


def verify(file: SealedFile) -> None:
    """Raises HarnessError, naming the file, if it is not the one that was sealed."""
    with opened(file, "records"):
        pass


def outline(file: SealedFile) -> tuple[Stretch, ...]:
    """Return all stretches of a file of `records`, in order; only the column of the keys is read.

    Raises HarnessError, naming the file, if it cannot be read or is not sorted by key.
    """
    with opened(_unverified(file), "records") as parquet:
        found = tuple(
            stretch
            for group in range(parquet.num_row_groups)
            for stretch in _in_group(parquet, group)
        )
    runs = [key for key, _ in groupby(found, key=lambda stretch: stretch.key)]
    if len(set(runs)) < len(runs):
        twice = next(key for key in runs if runs.count(key) > 1)
        raise HarnessError(f"{file.path} is not sorted by key: {twice} comes twice")
    return found


def stretch_rows(
    file: SealedFile, stretches: Sequence[Stretch], columns: Sequence[str]
) -> Iterator[pa.Table]:
    """Yield the rows of each stretch, one at a time, words dictionary-encoded.

    Raises HarnessError, naming the file, if it cannot be read.
    """
    with opened(_unverified(file), "records") as parquet:
        for stretch in stretches:
            table = parquet.read_row_group(stretch.group, columns=list(columns), use_threads=False)
            yield table.slice(stretch.first, stretch.count)


def some_keys_in(
    file: SealedFile, stretches: Sequence[Stretch], columns: Sequence[str]
) -> Iterator[tuple[str, pa.Table]]:
    """Yield the keys of these stretches, which are all of theirs and in order, with all their rows.

    A row group is read once. Raises HarnessError, naming the file, if it cannot be read.
    """
    group, table = -1, pa.table({})
    with opened(_unverified(file), "records") as parquet:
        for key, mine in groupby(stretches, key=lambda stretch: stretch.key):
            parts = []
            for stretch in mine:
                if stretch.group != group:
                    group = stretch.group
                    table = parquet.read_row_group(group, columns=list(columns))
                parts.append(table.slice(stretch.first, stretch.count))
            yield key, pa.concat_tables(parts)


def _in_group(parquet: Any, group: int) -> Iterator[Stretch]:
    first = 0
    keys = parquet.read_row_group(group, columns=["key"], use_threads=False)
    for key, rows in stretches_of(keys):
        yield Stretch(key=key, group=group, first=first, count=rows.num_rows)
        first += rows.num_rows


def _unverified(file: SealedFile) -> SealedFile:
    return SealedFile(path=file.path, digest="")
