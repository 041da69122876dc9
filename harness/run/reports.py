"""What people are shown of a run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from history.run_directory import RunDirectory
from nemesis.verbs.registry import VERBS
from report import page
from report.junit import write_junit
from report.palette import FaultLook, Shade
from report.sequence import Window

__all__ = ["LOOKS", "write_page", "write_reports"]

LOOKS: Final[Mapping[str, FaultLook]] = {
    verb.word: FaultLook(
        state=verb.state,
        shade=None if verb.tones is None else Shade(light=verb.tones[0], dark=verb.tones[1]),
    )
    for verb in VERBS.values()
    if verb.fault
}
"""Of each fault, as its verb has it."""


def write_reports(run: RunDirectory, *, window: Window | None = None) -> None:
    """The page and the JUnit file, from what the run directory holds.

    `window`: what of the run the page's sequence picture shows.
    """
    write_page(run, window=window)
    write_junit(run)


def write_page(run: RunDirectory, *, window: Window | None = None) -> Path:
    """The page alone, of a run in any state."""
    return page.write_page(run, window=window, looks=LOOKS)
