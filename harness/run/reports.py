"""The reports that a run leaves for people."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory
from fencepost.history.seal import seal
from fencepost.nemesis.verbs.registry import VERBS
from fencepost.report import page
from fencepost.report.junit import write_junit
from fencepost.report.palette import FaultLook, Shade
from fencepost.report.sequence import Window

_LOG: Final = logging.getLogger(__name__)

LOOKS: Final[Mapping[str, FaultLook]] = {
    verb.word: FaultLook(
        state=verb.state,
        shade=None if verb.tones is None else Shade(light=verb.tones[0], dark=verb.tones[1]),
    )
    for verb in VERBS.values()
    if verb.fault
}
"""The look of each fault, as its verb states it."""


def write_reports(run: RunDirectory, *, window: Window | None = None) -> None:
    """Write the page and the JUnit file, from what the run directory holds.

    `window`: the part of the run that the page's sequence picture shows.
    """
    write_page(run, window=window)
    write_junit(run)


def write_page(run: RunDirectory, *, window: Window | None = None) -> Path:
    """Write the page alone, of a run in any state.

    Its recorded data are sealed first, so that the page shows them.
    """
    if not run.history.is_dir() and any(run.raw.glob("*")):
        try:
            seal(run)
        except HarnessError as error:
            _LOG.warning("the page shows no history: %s", error)
    return page.write_page(run, window=window, looks=LOOKS)
