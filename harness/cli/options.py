"""Flags that several commands share."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = ["as_json", "emit_json", "results_option", "spark_master_option"]

Command = TypeVar("Command", bound=Callable[..., Any])

as_json: Callable[[Command], Command] = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON document."
)
results_option: Callable[[Command], Command] = click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    envvar="FENCEPOST_RESULTS",
    help="Where runs are stored.",
)
spark_master_option: Callable[[Command], Command] = click.option(
    "--spark-master",
    default="local[*]",
    show_default=True,
    help="Where the checkers run.",
)


def emit_json(document: object) -> None:
    """Print a JSON document on standard output."""
    click.echo(json.dumps(document, indent=2, default=str))
