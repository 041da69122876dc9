"""The operations behind a fault: looked for once it is known what they claim.

A sweep keeps bounds and not whose they are, for almost all of them are never asked about. So the
operations are gone through again where something is wrong, and only there. Any operation that
claims at least what the fault needs is a witness; of several, the one whose version is nearest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.linearizability.claims import COLUMNS, NOTHING, ModelRows, model_rows
from fencepost.checkers.linearizability.faults import ClaimKind, Witness
from fencepost.checkers.linearizability.operations import FS
from fencepost.checkers.rows import FAIL, OK
from fencepost.history.models import Model

SOUGHT_COLUMNS: Final = ("index", "process", *COLUMNS)
"""The columns of MODEL_OPERATIONS that are read to find and to show witnesses."""

_KEPT: Final = 2
"""The most operations kept for one witness: a version made twice has two."""

FoundWitnesses = Mapping[Witness, tuple[tuple[int, Mapping[str, Any]], ...]]
"""The operations found for each witness: the distance of each, and its row; the nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Roles:
    """The effect of each operation on versions, counted as in `claims`."""

    rows: ModelRows
    version: NDArray[np.int64]
    made: NDArray[np.bool_]
    shown: NDArray[np.bool_]
    held: bool
    absent: NDArray[np.bool_]
    refused: NDArray[np.bool_]


def sought(rows: pa.Table, model: Model, witnesses: Iterable[Witness]) -> FoundWitnesses:
    """Return the witnesses that are among these rows: `SOUGHT_COLUMNS` of MODEL_OPERATIONS."""
    roles = _roles(model_rows(rows, model), model)
    found = {}
    for witness in witnesses:
        mask, distance = _matching(roles, witness)
        places = np.flatnonzero(mask)
        nearest = places[np.argsort(distance[places], kind="stable")[:_KEPT]]
        if len(nearest):
            listed = rows.take(pa.array(nearest)).to_pylist()
            found[witness] = tuple(zip(distance[nearest].tolist(), listed, strict=True))
    return found


def merged(parts: Iterable[FoundWitnesses]) -> FoundWitnesses:
    """Return the witnesses that were found in several places as one result."""
    found: dict[Witness, tuple[tuple[int, Mapping[str, Any]], ...]] = {}
    for part in parts:
        for witness, rows in part.items():
            all_ = (*found.get(witness, ()), *rows)
            found[witness] = tuple(sorted(all_, key=lambda one: (one[0], one[1]["index"]))[:_KEPT])
    return found


def _roles(rows: ModelRows, model: Model) -> _Roles:
    def of(f: str, outcome: int) -> NDArray[np.bool_]:
        mask: NDArray[np.bool_] = rows.kind == FS[model].index(f) * 3 + outcome
        return mask

    nothing = np.zeros(len(rows), dtype=np.bool_)
    if model is Model.LOG:
        reads, empty = of("read", OK), rows.value == NOTHING
        return _Roles(
            rows=rows,
            version=np.where(rows.version == NOTHING, NOTHING, rows.version + 1),
            made=of("append", OK),
            shown=reads & ~empty,
            held=False,
            absent=reads & empty,
            refused=nothing,
        )
    implied = of("cas", OK) & (rows.version == NOTHING) & (rows.expected != NOTHING)
    return _Roles(
        rows=rows,
        version=np.where(implied, rows.expected + 1, rows.version),
        made=of("cas", OK) | of("write", OK),
        shown=of("read", OK),
        held=True,
        absent=nothing,
        refused=of("cas", FAIL) & ~rows.erred,
    )


def _matching(roles: _Roles, witness: Witness) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which operations are this witness, and the distance of each."""
    rows, version, number = roles.rows, roles.version, witness.number
    there = (roles.made | roles.shown) & (version != NOTHING)
    if witness.kind is ClaimKind.NOT_BEFORE:
        bounded = version + (roles.shown & roles.held)
        claims = (there & (roles.made | roles.held)) | roles.absent
        mask = claims & (bounded <= witness.version) & (rows.call == number)
        return mask, witness.version - bounded
    if witness.kind is ClaimKind.BY:
        mask = there & (version >= witness.version) & (rows.end == number)
        return mask, version - witness.version
    if witness.kind is ClaimKind.REFUSED:
        mask = roles.refused & (rows.expected == witness.version - 1) & (rows.end == number)
        return mask, -rows.call
    there &= version == witness.version
    if witness.kind is ClaimKind.MADE:
        there &= roles.made
    elif witness.kind is ClaimKind.VALUE:
        there &= rows.value == number
    elif witness.kind is ClaimKind.JUMPED:
        there &= roles.made & (rows.expected == number)
    return there, np.arange(len(rows), dtype=np.int64)
