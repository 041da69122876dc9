"""The findings of a check on one key: anomalies with proofs, counted in full, kept up to a bound.

A run can break a rule millions of times, and ten thousand proofs a key convince as well as all of
them. So every kernel counts everything by numpy and spells out `PROOFS_MAX` anomalies: those that
are never allowed first, each group in the order of the history. A count above the rows kept is
stated in the verdict.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.checkers.proof import Proof

_FACT: Final = pa.struct(
    [
        # `checkers.proof.FactKind`.
        pa.field("kind", pa.string(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        # A number in digits, unless the kind is "word".
        pa.field("value", pa.string(), nullable=False),
        # The origin of the fact, unless its kind says it; then empty.
        pa.field("source", pa.string(), nullable=False),
    ]
)

ANOMALIES: Final = pa.schema(
    [
        # The catalogue's name of the check.
        pa.field("check", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        # Reported, but legal under the promises of this run.
        pa.field("allowed", pa.bool_(), nullable=False),
        # The operations that prove it, by index.
        pa.field("operations", pa.list_(pa.field("element", pa.int64())), nullable=False),
        pa.field("offsets", pa.list_(pa.field("element", pa.int64())), nullable=False),
        pa.field("values", pa.list_(pa.field("element", pa.int64())), nullable=False),
        # Frames of the tape (`wire`), by number.
        pa.field("frames", pa.list_(pa.field("element", pa.int64())), nullable=False),
        # One sentence: the rule with its facts, for those who read the table without us.
        pa.field("detail", pa.string(), nullable=False),
        # The rule, with the names of facts in braces.
        pa.field("rule", pa.string(), nullable=False),
        pa.field("facts", pa.list_(pa.field("element", _FACT)), nullable=False),
    ]
)

SENTENCES: Final = pa.schema([field for field in ANOMALIES if field.name not in ("rule", "facts")])
"""The schema of the anomalies stored by runs that were checked before proofs were data."""

PROOFS_MAX: Final = 10_000
"""Anomalies spelled out a key and check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Anomaly:
    """One row of `ANOMALIES`."""

    check: str
    key: str
    allowed: bool
    proof: Proof

    @staticmethod
    def of_row(row: Mapping[str, Any]) -> "Anomaly":
        """Return the anomaly of a row, of this version or an earlier one."""
        return Anomaly(
            check=row["check"],
            key=row["key"],
            allowed=row["allowed"],
            proof=Proof.of_columns(row),
        )

    @property
    def operations(self) -> tuple[int, ...]:
        """The operations that prove it, by index."""
        return self.proof.operations

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offsets in the key's log, or in the metadata log where the check is about that."""
        return self.proof.offsets

    @property
    def values(self) -> tuple[int, ...]:
        """The values that it is about."""
        return self.proof.values

    @property
    def frames(self) -> tuple[int, ...]:
        """The frames of the tape, by number."""
        return self.proof.frames

    @property
    def detail(self) -> str:
        """The proof in one sentence."""
        return self.proof.sentence

    def row(self) -> dict[str, Any]:
        """Return the anomaly as a row that `of_row` reads."""
        head = {"check": self.check, "key": self.key, "allowed": self.allowed}
        return head | self.proof.columns()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The findings of one check on one key."""

    table: pa.Table
    """ANOMALIES, at most `PROOFS_MAX` rows."""
    never_count: int
    """Anomalies that break a promise, those beyond the bound included."""
    allowed_count: int
    """Anomalies that are legal here, those beyond the bound included."""
    case_count: int
    """Cases that were judged, those that hold included; the catalogue says what a case is."""
    doubt: str = ""
    """The reason why this key cannot be called valid even without a finding; empty if none."""
    doubt_count: int = 0
    """The number of cases that the doubt concerns; 0 if the doubt counts nothing."""
    order: tuple[int, ...] = ()
    """The place of each row of the table among the rows of the whole key; empty if not needed."""


def found(
    check: str,
    key: str,
    *,
    cases: int,
    never: NDArray[np.int64],
    allowed: NDArray[np.int64] | None = None,
    proof: Callable[[int], Proof],
    doubt: str = "",
    doubt_count: int = 0,
    order: NDArray[np.int64] | None = None,
) -> Found:
    """Spell out the anomalies whose numbers are in `never` and `allowed`, by asking `proof`.

    `cases`: how many were judged, these and those that hold.
    `order`: of each number, what it is sorted by in its key.
    """
    legal = np.empty(0, dtype=np.int64) if allowed is None else allowed
    kept_never = never[:PROOFS_MAX]
    kept_legal = legal[: PROOFS_MAX - len(kept_never)]
    kept = np.concatenate([kept_never, kept_legal])
    proofs = [proof(int(number)) for number in kept]
    return Found(
        table=_table(check, key, proofs=proofs, never_count=len(kept_never)),
        never_count=len(never),
        allowed_count=len(legal),
        case_count=cases,
        doubt=doubt,
        doubt_count=doubt_count,
        order=() if order is None else tuple(order[kept].tolist()),
    )


def none(check: str, key: str, *, cases: int, doubt: str = "", doubt_count: int = 0) -> Found:
    """Return findings without an anomaly, after `cases` cases were judged."""
    nothing = np.empty(0, dtype=np.int64)
    return found(
        check,
        key,
        cases=cases,
        never=nothing,
        proof=lambda _: Proof.as_told(""),
        doubt=doubt,
        doubt_count=doubt_count,
    )


def anomalies_of(table: pa.Table) -> Iterator[Anomaly]:
    """Return the rows of a table of `ANOMALIES` or `SENTENCES`, in order."""
    return (Anomaly.of_row(row) for row in table.to_pylist())


@cache
def _no_anomalies() -> pa.Table:
    """Return the table of nearly every answer; made once, and not where nothing is judged."""
    return ANOMALIES.empty_table()


def _table(check: str, key: str, *, proofs: list[Proof], never_count: int) -> pa.Table:
    if not proofs:
        return _no_anomalies()
    rows = [
        Anomaly(check=check, key=key, allowed=number >= never_count, proof=proof).row()
        for number, proof in enumerate(proofs)
    ]
    return pa.Table.from_pylist(rows, schema=ANOMALIES)
