"""The promise that an anomaly breaks: the weakest isolation level that forbids it.

The levels are ordered: what a weak one forbids every stronger one forbids, too. So one level says
all of an anomaly: a run that was promised that level or a stronger one is invalid, and under a
weaker promise the anomaly is reported and legal.

- read-uncommitted (Adya's PL-1): writes of committed transactions are ordered, the same for all
  objects (no G0), and lists hold what was appended, once.
- read-committed (PL-2): no transaction reads what was aborted (G1a) or not final (G1b), and nothing
  flows in a circle (G1c).
- snapshot: what a transaction reads is of one moment, its own writes added. Cycles of dependencies
  need two anti-dependencies in a row (Fekete et al. 2005): no G-single, no G-nonadjacent.
- serializable (PL-3 for items): no cycles (no G2-item).
- strict-serializable: no cycles with the orders of processes and of real time either.

Source: Adya, Liskov, O'Neil 2000; Cerone and Gotsman 2018; Elle's `consistency_model`.
"""

from enum import StrEnum
from typing import Final

from fencepost.history.models import Isolation

PROMISED_BY_DEFAULT: Final = Isolation.STRICT_SERIALIZABLE
_STRENGTH: Final = {level: strength for strength, level in enumerate(Isolation)}


class CycleClass(StrEnum):
    """The class of a cycle by its dependencies, the gravest first."""

    G0 = "G0"
    """Only ww: writes are ordered in a circle."""
    G1C = "G1c"
    """ww and wr: information flows in a circle."""
    G_SINGLE = "G-single"
    """One rw: a transaction saw half of another one."""
    G_NONADJACENT = "G-nonadjacent"
    """Several rw, no two in a row: two saw the writes of two others in opposite orders."""
    G2_ITEM = "G2-item"
    """rw in a row: each of two decided on what the other changed."""


_LEVELS: Final = {
    CycleClass.G0: Isolation.READ_UNCOMMITTED,
    CycleClass.G1C: Isolation.READ_COMMITTED,
    CycleClass.G_SINGLE: Isolation.SNAPSHOT,
    CycleClass.G_NONADJACENT: Isolation.SNAPSHOT,
    CycleClass.G2_ITEM: Isolation.SERIALIZABLE,
}


def level_of_cycle(kind: CycleClass, *, plain: bool) -> Isolation:
    """Return the weakest level that forbids it. `plain`: no order of processes or real time."""
    return _LEVELS[kind] if plain else Isolation.STRICT_SERIALIZABLE


def is_forbidden(level: Isolation, *, promise: Isolation) -> bool:
    """Return whether this promise forbids what `level` forbids."""
    return _STRENGTH[level] <= _STRENGTH[promise]


def promised(isolation: str) -> Isolation:
    """Return the isolation level that a manifest promises."""
    return Isolation(isolation) if isolation else PROMISED_BY_DEFAULT
