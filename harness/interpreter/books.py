"""The books that an interpreter keeps of its actions. A trial off the record writes nothing.

The performed play has each step with its time and nodes, on disk before it is tried.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import yaml

from fencepost.nemesis.play import step_data
from fencepost.nemesis.verbs.step import Step


class FaultBook(Protocol):
    """The rows of `faults`; see `history.journal.FaultJournal`."""

    def begin(self, fault: str, targets: Iterable[str], *, kind: str | None = None) -> int:
        """Open a row, before the fault is done to its targets; return its index."""

    def effect(self, index: int, evidence: str) -> None:
        """Record that the fault was seen to work."""

    def end(self, index: int, evidence: str) -> None:
        """Record that the fault is over."""


class Played(Protocol):
    """The performed play."""

    def note(self, step: Step, **done: Any) -> None:
        """Record a step before it is tried, with its time and nodes in place of those of the step.

        `done`: these fields, by name. A book that is written makes the step that has them.
        """


class Unwritten:
    """The books in which nothing is written: `FaultBook`, `Played`, `WritesRows`."""

    def begin(self, *_: object, **__: object) -> int:
        """Open no row."""
        return 0

    def effect(self, index: int, evidence: str) -> None:
        """Record nothing."""

    def end(self, index: int, evidence: str) -> None:
        """Record nothing."""

    def note(self, step: Step, **done: Any) -> None:
        """Record nothing."""

    def add(self, row: Mapping[str, object]) -> None:
        """Record nothing."""


class PerformedPlay:
    """`play.yaml` of a run, in the words of a scenario, so that it can be replayed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._path.write_text("# What was performed, at which time of the play.\n")

    def note(self, step: Step, **done: Any) -> None:
        """Append a step, on disk at once."""
        told = [step_data(replace(step, **done))]
        line = yaml.safe_dump(told, default_flow_style=True, sort_keys=False, width=100_000)
        with self._path.open("a", encoding="utf-8") as play:
            play.write(f"- {line.strip().removeprefix('[').removesuffix(']')}\n")
