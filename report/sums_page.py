"""One small page for the runs of a series or a night: the sum, a row a group, a row a run.

It has no script and no reference to a network; links lead to the runs' own pages, relative to it,
so that a directory of results can be moved or served.
"""

import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from fencepost.history.atomic import write_atomically
from fencepost.report import notation
from fencepost.report.sums import (
    VERDICTS,
    LeftOutCell,
    SummedRun,
    not_judged_in,
    run_groups,
    sum_line,
)


def write_sums_page(
    path: Path,
    runs: Sequence[SummedRun],
    *,
    title: str,
    started_at: str,
    command: str,
    left_out: Sequence[LeftOutCell] = (),
) -> None:
    """Write the page. Raises HarnessError if it cannot be written.

    `command`: the line that repeats the whole.
    """
    text = (
        _environment()
        .get_template("sums.html.j2")
        .render(
            title=title,
            started_at=started_at,
            command=command,
            line=sum_line(runs, left_out=left_out),
            groups=run_groups(runs),
            runs=[(run, _link(path, run)) for run in runs],
            any_found=any(run.findings for run in runs),
            any_told=any(run.findings or run.reason for run in runs),
            left_out=left_out,
            not_judged=not_judged_in(runs),
            verdicts=VERDICTS,
        )
    )
    write_atomically(path, text.encode())


def _link(page: Path, run: SummedRun) -> str | None:
    """Return the way from the page to that of the run; None where it has none."""
    report = None if run.run is None else Path(run.run) / "report.html"
    if report is None or not report.is_file():
        return None
    return Path(os.path.relpath(report.resolve(), page.parent.resolve())).as_posix()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("fencepost.report", package_path=""),
        autoescape=True,
        finalize=_inert,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(moment=notation.utc, integer=notation.integer, length=_length)
    return environment


def _inert(value: object) -> object:
    """Return a value of a run so that it is shown, not acted on."""
    return notation.printable(value) if isinstance(value, str) else value


def _length(seconds: float) -> str:
    return notation.length(seconds * 1e9)
