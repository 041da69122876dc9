"""`fencepost claim`."""

from pathlib import Path
from typing import Any

import click

from harness.cli.options import as_json, results_option

__all__ = ["claim"]


@click.command()
@click.argument("name", required=False)
@click.option(
    "--write",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Put the table of all claims between the markers of this file.",
)
@results_option
@as_json
def claim(**flags: Any) -> int:
    """Prove claim NAME by its command, and store what came of it; without NAME, list all.

    From a checkout, whose results/claims.toml lists the claims. Exit codes: 0 proved, and 1 if one
    is not.
    """
    from harness.cli.claiming import claim as work

    return work(**flags)
