"""Rows of a table gathered by key, on disk: in as they come, out key by key and in order.

Batches are appended to one scratch file, each sorted by key; only the places of the runs are kept
in memory. A key's rows come out sorted by the table's first column, from the mapped file, a piece
at a time: what is in memory then is a number a row of that key, and the piece.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.history.model_tables import by_bucket

_BATCH_ROWS: Final = 1 << 18
_PIECE_ROWS: Final = 1 << 18


class _Run(NamedTuple):
    batch: int
    start: int
    length: int


class KeySpill:
    """One scratch file of rows of `schema`, which has a column `key`. First `add`, then `keys`.

    The first column is the number that the rows of a key are sorted by; rows of equal numbers stay
    in the order in which they came.
    """

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._path = path
        self._schema = schema
        self._number = schema.names[0]
        self._words = [field.name for field in schema if pa.types.is_string(field.type)]
        # On disk a word is its place among all words of its column.
        self._vocabularies: dict[str, dict[str, int]] = {name: {} for name in self._words}
        self._stored = pa.schema(
            [
                field.with_type(pa.int32()) if field.name in self._words else field
                for field in schema
            ]
        )
        self._sink = pa.OSFile(str(path), "wb")
        self._writer = pa.ipc.new_file(self._sink, self._stored)
        self._waiting: list[pa.Table] = []
        self._waiting_rows = 0
        self._batch_count = 0
        self._runs: dict[int, list[_Run]] = defaultdict(list)
        self._lists: dict[str, list[str]] = {}

    def add(self, table: pa.Table) -> None:
        """Append rows of any keys, words as strings."""
        assert table.schema.equals(self._schema), table.schema
        self._waiting.append(table)
        self._waiting_rows += table.num_rows
        if self._waiting_rows >= _BATCH_ROWS:
            self._flush()

    def keys(self) -> Iterator[tuple[str, Iterator[pa.Table]]]:
        """Yield each key with its rows, words as dictionaries, bucket by bucket.

        Add nothing after that.

        The rows of a key have to be taken before the next key is.
        """
        self._flush()
        self._writer.close()
        self._sink.close()
        if not self._batch_count:
            return
        with pa.memory_map(str(self._path)) as source:
            file = pa.ipc.open_file(source)
            for key in by_bucket(self._vocabularies["key"]):
                runs = self._runs[self._vocabularies["key"][key]]
                yield key, self._rows(file, runs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._sink.close()
        self._path.unlink(missing_ok=True)

    def _flush(self) -> None:
        if not self._waiting_rows:
            return
        table = pa.concat_tables(self._waiting).combine_chunks()
        self._waiting, self._waiting_rows = [], 0
        codes = {name: self._codes(name, table[name]) for name in self._words}
        keys = codes["key"].to_numpy()
        order = np.argsort(keys, kind="stable")
        columns = [codes.get(name, table[name]) for name in self._schema.names]
        stored = pa.Table.from_arrays(columns, schema=self._stored).take(pa.array(order))
        self._note_runs(keys[order])
        self._writer.write_batch(stored.combine_chunks().to_batches()[0])
        self._batch_count += 1

    def _codes(self, name: str, column: pa.ChunkedArray) -> pa.Array:
        vocabulary = self._vocabularies[name]
        encoded = column.combine_chunks().dictionary_encode()
        places = [
            vocabulary.setdefault(word, len(vocabulary)) for word in encoded.dictionary.to_pylist()
        ]
        return pa.array(places, pa.int32()).take(encoded.indices)

    def _note_runs(self, keys: NDArray[np.int32]) -> None:
        starts = np.flatnonzero(np.diff(keys, prepend=-1))
        lengths = np.diff(np.append(starts, len(keys)))
        for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
            self._runs[int(keys[start])].append(_Run(self._batch_count, start, length))

    def _rows(self, file: Any, runs: list[_Run]) -> Iterator[pa.Table]:
        slices = [file.get_batch(run.batch).slice(run.start, run.length) for run in runs]
        whole = pa.Table.from_batches(slices)
        numbers = np.concatenate([piece.column(self._number).to_numpy() for piece in slices])
        order = None
        if len(numbers) > 1 and bool((np.diff(numbers) < 0).any()):
            order = np.argsort(numbers, kind="stable")
        for start in range(0, len(numbers), _PIECE_ROWS):
            if order is None:
                piece = whole.slice(start, _PIECE_ROWS)
            else:
                piece = whole.take(pa.array(order[start : start + _PIECE_ROWS]))
            yield self._with_words(piece)

    def _with_words(self, piece: pa.Table) -> pa.Table:
        columns = [
            self._dictionary(name, piece[name]) if name in self._words else piece[name]
            for name in self._schema.names
        ]
        fields = [
            field.with_type(column.type)
            for field, column in zip(self._schema, columns, strict=True)
        ]
        return pa.Table.from_arrays(columns, schema=pa.schema(fields))

    def _dictionary(self, name: str, codes: pa.ChunkedArray) -> pa.Array:
        """Return a dictionary of the words that occur here only.

        A vocabulary of keys may be large.
        """
        encoded = codes.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.combine_chunks()
        every = self._word_list(name)
        words = [every[code] for code in encoded.dictionary.to_pylist()]
        return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(words, pa.string()))

    def _word_list(self, name: str) -> list[str]:
        found = self._lists.get(name)
        if found is None:
            found = self._lists[name] = list(self._vocabularies[name])
        return found
