"""The tasks that judge open histories: each does one piece of work at a time, independently.

A piece is a file to verify, keys to judge whole, a slab of a large key to sum up, or row groups to
look through for witnesses. Memory holds one key where a kernel wants its rows together; else a row
group, and what a slab keeps of its versions. A failure with one key is an answer about that key:
what it raises is caught here, and what ends the worker is found out by `group`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from time import perf_counter
from typing import Any

import pyarrow as pa

from fencepost.checkers.anomaly import Found, none
from fencepost.checkers.finding_rows import found_row, unknown_row
from fencepost.checkers.linearizability.budget import Budget
from fencepost.checkers.linearizability.claims import COLUMNS
from fencepost.checkers.linearizability.conclusion import concluded
from fencepost.checkers.linearizability.faults import NO_ENTRY, EntryBound, Witness
from fencepost.checkers.linearizability.kernels import KeyKernel
from fencepost.checkers.linearizability.model_files import (
    KeyGroups,
    keys_of_group,
    rows_of_groups,
    verify,
)
from fencepost.checkers.linearizability.slab import Slab
from fencepost.checkers.linearizability.slabs import SlabCut, end_of
from fencepost.checkers.linearizability.versioned import (
    NAME,
    VERSIONED,
    found_of,
    nonlinearizable,
    taken,
    witnesses_of,
)
from fencepost.checkers.linearizability.witnesses import SOUGHT_COLUMNS, merged, sought
from fencepost.checkers.runner.memory import out_of_memory, share_bytes
from fencepost.checkers.runner.tables import SealedFile
from fencepost.history.failure import HarnessError
from fencepost.history.models import Model
from fencepost.history.schema import MODEL_OPERATIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class Verify:
    """Compare the digest of a file."""

    file: SealedFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Keys:
    """Judge keys whole."""

    file: SealedFile
    groups: KeyGroups
    first: int = 0
    """In a row group with several keys: the number of the first key to judge."""
    end: int | None = None
    """The number after the last key to judge; None: all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sum:
    """Sum up a slab of a key."""

    file: SealedFile
    key: str
    cut: SlabCut
    entry: EntryBound = NO_ENTRY


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Look for witnesses in a row group of one key."""

    file: SealedFile
    key: str
    group: int
    witnesses: tuple[Witness, ...]


Piece = Verify | Keys | Sum | Search


@dataclass(frozen=True, slots=True)
class PieceWork:
    """The work that is done on each piece."""

    model: Model
    seconds: float
    """For each key that is searched."""
    kernels: Mapping[Model, KeyKernel]

    def __call__(self, piece: Piece) -> Any:
        """Do this piece: rows of FINDINGS, a Summary or what was Found come of it."""
        if isinstance(piece, Verify):
            return verify(piece.file)
        if isinstance(piece, Keys):
            return list(self._of_keys(piece))
        if isinstance(piece, Sum):
            return self._sum(piece)
        read = rows_of_groups(piece.file, [piece.group], SOUGHT_COLUMNS)
        return [sought(rows, self.model, piece.witnesses) for _, rows in read]

    def _sum(self, piece: Sum) -> Any:
        slab = Slab(piece.cut.first, piece.cut.end, limit=piece.cut.limit)
        for group, rows in rows_of_groups(piece.file, piece.cut.groups, COLUMNS):
            taken(slab, rows, self.model, owned=group in piece.cut.owned)
        return slab.summary(piece.entry)

    def _of_keys(self, piece: Keys) -> Iterator[dict[str, Any]]:
        """Yield rows of FINDINGS, of each key."""
        key = piece.groups.key
        if key is not None:
            yield _row(key, partial(self._of_key, key, piece))
            return
        columns = ("key", *SOUGHT_COLUMNS) if self.model in VERSIONED else MODEL_OPERATIONS.names
        several = keys_of_group(piece.file, piece.groups.parts[0].group, columns)
        for name, rows in islice(several, piece.first, piece.end):
            yield _row(name, partial(self._of_rows, name, rows))

    def _of_key(self, key: str, piece: Keys) -> Found:
        numbers = [part.group for part in piece.groups.parts]
        if self.model not in VERSIONED:
            columns = MODEL_OPERATIONS.names
            tables = [rows for _, rows in rows_of_groups(piece.file, numbers, columns)]
            return self._of_rows(key, pa.concat_tables(tables))
        slab = Slab(0, end_of(piece.groups.parts), limit=piece.groups.row_count)
        for _, rows in rows_of_groups(piece.file, numbers, COLUMNS):
            taken(slab, rows, self.model)
        conclusion = concluded([slab.summary()])
        witnesses = witnesses_of(conclusion)
        sighted = merged(
            sought(rows, self.model, witnesses)
            for _, rows in rows_of_groups(piece.file, numbers if witnesses else [], SOUGHT_COLUMNS)
        )
        return found_of(key, conclusion, self.model, sighted=sighted)

    def _of_rows(self, key: str, rows: pa.Table) -> Found:
        if self.model in VERSIONED:
            return nonlinearizable(key, rows, self.model)
        plain = rows.cast(MODEL_OPERATIONS)
        share = share_bytes()
        if plain.nbytes > share:
            doubt = f"{plain.num_rows} operations of {key} exceed {share} bytes"
            return none(NAME, key, cases=0, doubt=doubt)
        return self.kernels[self.model](key, plain, Budget(seconds=self.seconds, bytes=share))


def _row(key: str, judged: "partial[Found]") -> dict[str, Any]:
    """Return a row of FINDINGS but its path; an error of the judgement leaves this key unknown."""
    started = perf_counter()
    try:
        row = found_row(NAME, judged())
    except HarnessError:
        raise
    except MemoryError as error:
        row = unknown_row(NAME, f"{key}: {out_of_memory(error)}", seconds=0.0)
    except Exception as error:  # noqa: BLE001  # one key's crash must not silence the others
        reason = f"the check crashed on {key}: {type(error).__name__}: {error}"
        row = unknown_row(NAME, reason, seconds=0.0)
    return row | {"key": key, "seconds": perf_counter() - started}
