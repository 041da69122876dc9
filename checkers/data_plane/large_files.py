"""Which keys of which files are large, and how files with such keys are read beside them."""

from collections.abc import Mapping, Sequence
from itertools import accumulate, groupby
from typing import Final

from checkers.data_plane.large_keys import LargeKey
from checkers.data_plane.large_tasks import Piece
from checkers.table_pieces import Stretch
from checkers.tables import SealedFile

__all__ = ["KEY_ROWS_MAX", "large_keys_of"]

KEY_ROWS_MAX: Final = 1 << 23
"""Rows of a key that is judged as a whole: some 100 bytes each in a task."""


def large_keys_of(
    file: SealedFile, stretches: Sequence[Stretch], *, key_rows_max: int
) -> list[LargeKey]:
    """The keys of a file that have more rows."""
    return [
        LargeKey(name=key, pieces=_pieces(file, mine))
        for key, mine in _by_key(stretches).items()
        if sum(stretch.count for stretch in mine) > key_rows_max
    ]


def _by_key(stretches: Sequence[Stretch]) -> Mapping[str, tuple[Stretch, ...]]:
    """The stretches of each key, which follow each other."""
    return {key: tuple(mine) for key, mine in groupby(stretches, key=lambda stretch: stretch.key)}


def _pieces(file: SealedFile, stretches: Sequence[Stretch]) -> tuple[Piece, ...]:
    first_rows = accumulate((stretch.count for stretch in stretches), initial=0)
    return tuple(
        Piece(file=file, stretch=stretch, first_row=first)
        for stretch, first in zip(stretches, first_rows, strict=False)
    )
