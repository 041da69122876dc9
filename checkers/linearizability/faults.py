"""What is wrong with versions, and which operations would prove it.

A fault is found on bounds, which do not say whose they are. It names what its operations claim;
`witnesses` finds them.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from checkers.linearizability.claims import NEVER

__all__ = ["NO_ENTRY", "Entry", "Fault", "Kind", "Rule", "Witness"]


class Rule(StrEnum):
    """What can be wrong."""

    TIMES = "times"
    MADE_TWICE = "made-twice"
    TWO_VALUES = "two-values"
    JUMP = "jump"
    BEFORE_FIRST = "before-first"
    NOBODY = "nobody"


class Kind(StrEnum):
    """What a witness, an operation that is part of a proof, claims."""

    NOT_BEFORE = "not-before"
    """That `version` did not appear before `number`, by a version up to it."""
    BY = "by"
    """That `version` had appeared by `number`, by a version from it on."""
    REFUSED = "refused"
    """That if `version` - 1 appeared before the call, `version` had by `number`: its return."""
    MADE = "made"
    """That it made `version`."""
    VALUE = "value"
    """That `version` has the value `number`."""
    JUMPED = "jumped"
    """That it made `version`, expecting `number`."""
    SAW = "saw"
    """That there is `version`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """An operation to look for."""

    kind: Kind
    version: int
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Operations that no order explains."""

    rule: Rule
    witnesses: tuple[Witness, ...]
    version_count: int = 1
    """Versions that it is about, from that of the first witness on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """To when the slab before lowers the first version of this one, and by which refusals."""

    latest: int
    witnesses: tuple[Witness, ...]


NO_ENTRY: Final = Entry(latest=NEVER, witnesses=())
