"""The faults of versions, and the operations that would prove them.

A fault is found on bounds, which do not name their operations. It names the claims of its
operations; `witnesses` finds the operations.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fencepost.checkers.linearizability.claims import NEVER


class Violation(StrEnum):
    """The rule that a fault breaks."""

    TIMES = "times"
    MADE_TWICE = "made-twice"
    TWO_VALUES = "two-values"
    JUMP = "jump"
    BEFORE_FIRST = "before-first"
    NOBODY = "nobody"


class ClaimKind(StrEnum):
    """The claim of a witness, which is an operation that is part of a proof."""

    NOT_BEFORE = "not-before"
    """`version` did not appear before `number`; claimed by a version up to it."""
    BY = "by"
    """`version` had appeared by `number`; claimed by a version from it on."""
    REFUSED = "refused"
    """`version` had appeared by `number`, its return, if `version` - 1 had before its call."""
    MADE = "made"
    """The operation made `version`."""
    VALUE = "value"
    """`version` has the value `number`."""
    JUMPED = "jumped"
    """The operation made `version`, expecting `number`."""
    SAW = "saw"
    """`version` exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Witness:
    """An operation to look for."""

    kind: ClaimKind
    version: int
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Operations that no order explains."""

    rule: Violation
    witnesses: tuple[Witness, ...]
    version_count: int = 1
    """Versions that it is about, from that of the first witness on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryBound:
    """To when the slab before lowers the first version of this one, and by which refusals."""

    latest: int
    witnesses: tuple[Witness, ...]


NO_ENTRY: Final = EntryBound(latest=NEVER, witnesses=())
