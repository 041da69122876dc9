"""What people are shown of a run."""

from history.run_directory import RunDirectory
from report.junit import write_junit
from report.page import write_page
from report.sequence import Window

__all__ = ["write_reports"]


def write_reports(run: RunDirectory, *, window: Window | None = None) -> None:
    """The page and the JUnit file, from what the run directory holds.

    `window`: what of the run the page's sequence picture shows.
    """
    write_page(run, window=window)
    write_junit(run)
