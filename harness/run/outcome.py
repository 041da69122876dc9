"""The outcome of a run."""

from dataclasses import dataclass

from fencepost.checkers.verdict import Verdict
from fencepost.history.run_directory import RunDirectory


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """A run that came to its verdict."""

    run: RunDirectory
    verdict: Verdict
    as_expected: bool | None
    """True if the verdict is what the scenario expects of this release; None: it states nothing,
    or not of a valid run whose demands were waived."""
    ended_early: bool = False
    """The user ended its faults before their time, and wants no further run."""
