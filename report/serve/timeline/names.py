"""Words as small numbers, given out in the order in which they are met."""

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Codes = NDArray[np.int64]
_DENSE_MAX: Final = 1 << 20


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
        # One number a row. Combinations are few and rows many: nothing is sorted if that can be.
        bases = [int(part.max(initial=0)) + 2 for part in parts]
        mixed = np.zeros(len(parts[0]), dtype=np.int64)
        for part, base in zip(parts, bases, strict=True):
            mixed = mixed * base + part + 1
        if math.prod(bases) <= _DENSE_MAX:
            there = np.zeros(math.prod(bases), dtype=bool)
            there[mixed] = True
            combinations = np.flatnonzero(there)
            table = np.zeros(len(there), dtype=np.int64)
            table[combinations] = self._spelled(combinations, bases, spell)
            dense: Codes = table[mixed]
            return dense
        combinations, inverse = np.unique(mixed, return_inverse=True)
        table = np.array(self._spelled(combinations, bases, spell), dtype=np.int64)
        found: Codes = table[inverse.reshape(-1)]
        return found

    def _spelled(
        self, combinations: Codes, bases: Sequence[int], spell: Callable[..., str]
    ) -> list[int]:
        found = []
        for mixed in combinations.tolist():
            numbers = []
            rest = mixed
            for base in reversed(bases):
                rest, number = divmod(rest, base)
                numbers.append(number - 1)
            found.append(self.code(spell(*reversed(numbers))))
        return found
