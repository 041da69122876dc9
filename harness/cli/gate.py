"""`fencepost gate`: whether a night passes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from fencepost.harness.cli.options import as_json, results_option

Command = TypeVar("Command", bound=Callable[..., Any])


def _file(flag: str, text: str) -> Callable[[Command], Command]:
    return click.option(
        flag, type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help=text
    )


@click.command()
@click.argument("nights", nargs=-1, metavar="[NIGHT]")
@click.option(
    "--against",
    metavar="NIGHT|FILE",
    help="Hold it against this night alone. [default: all nights of its name before]",
)
@_file("--known", "YAML file of known issues, which suspend the gate until a date each.")
@click.option(
    "--list", "list_known", is_flag=True, help="List the known issues, and judge nothing."
)
@click.option(
    "--preview",
    is_flag=True,
    help="Say of each of several NIGHTs, or of all before the newest, what would have been called.",
)
@_file("--summary", "Append a summary in Markdown, as to $GITHUB_STEP_SUMMARY.")
@_file("--junit", "Write a JUnit file: what gates fails, what is suspended is skipped.")
@_file("--ctrf", "Write a report in the Common Test Report Format (JSON).")
@click.option("--annotations", is_flag=True, help="Print GitHub's annotations of what is new.")
@click.option("--alert", is_flag=True, help="Print at most ten lines, for a pager or a chat.")
@results_option
@as_json
def gate(**flags: Any) -> int:
    """Say whether NIGHT passes (a path, NAME, or NAME/TIME; by default the newest), and why.

    Each finding is called new, ongoing, resolved or not seen, by the nights before. Exit codes: 0
    the night passes, 1 a finding gates, 2 unknown or not enough, 254 wrong use, 255 runs (or the
    gate) failed. The first of 1, 255, 2 and 0 counts.
    """
    from fencepost.harness.cli.gating import gate as work

    return work(**flags)
