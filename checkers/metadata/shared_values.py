"""Columns as lists whose equal values are one object.

A table of a long night has millions of rows, and most of their words are the same few: as lists of
their own words they would take five times the memory.
"""

from typing import Any

import pyarrow as pa


def shared_values(column: pa.Array, *, unique: bool = False) -> list[Any]:
    """Return the values of a column; `unique`: nearly each is another, so none are looked up."""
    if column.null_count == len(column):
        return [None] * len(column)
    if unique or pa.types.is_nested(column.type) or pa.types.is_boolean(column.type):
        return list(column.to_pylist())
    coded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    words = [*coded.dictionary.to_pylist(), None]
    return [words[code] for code in coded.indices.fill_null(len(words) - 1).to_pylist()]
