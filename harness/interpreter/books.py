"""The books that an interpreter keeps of its actions. A trial off the record writes nothing.

The performed play has each step with its time and nodes, on disk before it is tried.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import yaml

from nemesis.play import step_data
from nemesis.verbs.step import Step

__all__ = ["FaultBook", "PerformedPlay", "Played", "Unwritten"]


class FaultBook(Protocol):
    """The rows of `faults`; see `history.journal.FaultJournal`."""

    def begin(self, fault: str, targets: Sequence[str], *, kind: str | None = None) -> int:
        """Open a row, before the fault is done to its targets; return its index."""

    def effect(self, index: int, evidence: str) -> None:
        """Record that the fault was seen to work."""

    def end(self, index: int, evidence: str) -> None:
        """Record that the fault is over."""


class Played(Protocol):
    """The performed play."""

    def note(self, step: Step) -> None:
        """Record a step before it is tried, with its time and its nodes."""


class Unwritten:
    """The books in which nothing is written: `FaultBook` and `Played`."""

    def begin(self, *_: object, **__: object) -> int:
        """Open no row."""
        return 0

    def effect(self, index: int, evidence: str) -> None:
        """Record nothing."""

    def end(self, index: int, evidence: str) -> None:
        """Record nothing."""

    def note(self, step: Step) -> None:
        """Record nothing."""


class PerformedPlay:
    """`play.yaml` of a run, in the words of a scenario, so that it can be replayed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._path.write_text("# What was performed, at which time of the play.\n")

    def note(self, step: Step) -> None:
        """Append a step, on disk at once."""
        line = yaml.safe_dump(
            [step_data(step)], default_flow_style=True, sort_keys=False, width=100_000
        )
        with self._path.open("a", encoding="utf-8") as play:
            play.write(f"- {line.strip().removeprefix('[').removesuffix(']')}\n")
