"""The windows of several runs together: which strikes took effect in which kinds of window.

It is computed from the runs that reached a verdict. Runs that recorded no windows are counted, and
add nothing: that a strike is not in the grid says that it was never tried in those that did. A
system whose messages are not read has no windows, so there is nothing that its runs could lack.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from fencepost.checkers.grounds.windows import WindowKind, strikes_in, summed_kinds, window_kinds_in
from fencepost.harness.run.outcome import RunOutcome
from fencepost.history.manifest import read_manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowGrid:
    """The sums of the windows of a series."""

    run_count: int
    """The runs that reached a verdict."""
    recorded_count: int
    """Those among them that recorded all windows that they had."""
    kinds: tuple[WindowKind, ...]

    @property
    def strikes(self) -> tuple[str, ...]:
        """The kinds of strike, in the order of their names: the rows of the grid."""
        return strikes_in(self.kinds)

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON data."""
        return {
            "runs": self.run_count,
            "recorded": self.recorded_count,
            "kinds": kinds_json(self.kinds),
        }


def window_grid(runs: Iterable[Sequence[WindowKind] | None]) -> WindowGrid:
    """Return the grid of these runs; None: a run that did not record its windows."""
    told = list(runs)
    recorded = [kinds for kinds in told if kinds is not None]
    return WindowGrid(
        run_count=len(told), recorded_count=len(recorded), kinds=summed_kinds(recorded)
    )


def windows_of_run(outcome: RunOutcome) -> tuple[WindowKind, ...] | None:
    """Return the windows of a run by kind; None if it had some and did not record them.

    A run on objects has none (`Manifest.model`). Raises HarnessError if its manifest is lost.
    """
    told = window_kinds_in(outcome.verdict)
    if told is None and read_manifest(outcome.run.manifest_path).model:
        return ()
    return told


def kinds_json(kinds: Sequence[WindowKind]) -> dict[str, Any]:
    """Return the counts by kind of window as JSON data."""
    return {
        one.kind: {
            "laid": one.laid_count,
            "opened": one.opened_count,
            "struck": one.struck_count,
            "unused": one.unused_count,
            "strikes": dict(one.strikes),
        }
        for one in kinds
    }
