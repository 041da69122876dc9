"""What an interpreter writes down of its doings. A trial that is not recorded writes nothing."""

from collections.abc import Sequence
from typing import Protocol

from nemesis.verbs.step import Step

__all__ = ["FaultBook", "Played", "Unwritten"]


class FaultBook(Protocol):
    """Rows of `faults`; see `history.journal.FaultJournal`."""

    def begin(self, fault: str, targets: Sequence[str], *, kind: str | None = None) -> int:
        """Open a row, before the fault is done to its targets; its index."""

    def effect(self, index: int, evidence: str) -> None:
        """The fault was seen to work."""

    def end(self, index: int, evidence: str) -> None:
        """The fault is over."""


class Played(Protocol):
    """The performed play."""

    def note(self, step: Step) -> None:
        """Hear of a step before it is tried, with its time and its nodes."""


class Unwritten:
    """Books in which nothing is written: `FaultBook` and `Played`."""

    def begin(self, fault: str, targets: Sequence[str], *, kind: str | None = None) -> int:
        """Open no row."""
        del fault, targets, kind
        return 0

    def effect(self, index: int, evidence: str) -> None:
        """Forget it."""

    def end(self, index: int, evidence: str) -> None:
        """Forget it."""

    def note(self, step: Step) -> None:
        """Forget it."""
