"""Words as small numbers, given out in the order in which they are met."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["Names"]

Codes = NDArray[np.int64]


class Names:
    """A dictionary of words that grows; the code of the empty word is 0, and null is that word."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {"": 0}

    @property
    def words(self) -> Sequence[str]:
        """The words, by code."""
        return tuple(self._codes)

    def code(self, word: str) -> int:
        """Return the code of a word, new or known."""
        return self._codes.setdefault(word, len(self._codes))

    def codes(self, column: pa.Array) -> Codes:
        """Return the code of each value of a column of strings, plain or dictionary-coded."""
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        known = [self.code(word or "") for word in column.dictionary.to_pylist()]
        table = np.array([*known, 0], dtype=np.int64)
        places: Codes = table[column.indices.fill_null(len(known)).to_numpy(zero_copy_only=False)]
        return places

    def joined(self, *parts: Codes, spell: Callable[..., str]) -> Codes:
        """Return the code of the word that `spell` makes of each row of several columns of numbers.

        A word is spelled once for each combination that occurs.
        """
        stacked = np.stack(parts, axis=1)
        if not len(stacked):
            return np.zeros(0, dtype=np.int64)
        # One number a row: combinations are few, and rows many.
        base = stacked.max(axis=0) + 2
        mixed = np.zeros(len(stacked), dtype=np.int64)
        for place in range(stacked.shape[1]):
            mixed = mixed * base[place] + stacked[:, place] + 1
        _, first, inverse = np.unique(mixed, return_index=True, return_inverse=True)
        table = np.array([self.code(spell(*map(int, stacked[at]))) for at in first], dtype=np.int64)
        found: Codes = table[inverse.reshape(-1)]
        return found

