"""The flags that several commands share."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from fencepost.history.failure import SpecError
from fencepost.nemesis.words import duration_s

_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([MGT])(?:i?B)?", re.IGNORECASE)
_SIZE_BYTES: Final = {"M": 1 << 20, "G": 1 << 30, "T": 1 << 40}

Command = TypeVar("Command", bound=Callable[..., Any])

_SPARK_MASTER: Final = re.compile(
    r"local(\[(\*|[1-9]\d*)(,\d+)?\])?|local-cluster\[.+\]|yarn|spark://[^:/]+:\d+.*|k8s://.+"
)
"""The masters that Spark knows (its documentation, "Master URLs")."""


def _spark_master(_: click.Context, __: click.Parameter, text: str) -> str:
    if not _SPARK_MASTER.fullmatch(text):
        raise click.BadParameter(
            f"{text!r} is not a Spark master: local[2], spark://HOST:PORT, yarn or k8s://HOST:PORT"
        )
    return text


as_json: Callable[[Command], Command] = click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one JSON document."
)
results_option: Callable[[Command], Command] = click.option(
    "--results",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    envvar="FENCEPOST_RESULTS",
    help="Directory of stored runs.",
)
set_option: Callable[[Command], Command] = click.option(
    "--set",
    multiple=True,
    metavar="NAME=VALUE",
    help="Fill in a parameter of the scenario. Can be repeated.",
)
spark_master_option: Callable[[Command], Command] = click.option(
    "--spark-master",
    default="local[*]",
    show_default=True,
    callback=_spark_master,
    help="Spark master that runs the checkers.",
)


def duration(_: click.Context, __: click.Parameter, text: str | None) -> float | None:
    """Return the seconds of an option that is a duration, as a callback of click's."""
    if text is None:
        return None
    try:
        return duration_s(text)
    except SpecError as error:
        raise click.BadParameter(error.message) from None


def _bytes(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    if text is None:
        return None
    found = _SIZE.fullmatch(text.strip())
    if found is None or float(found[1]) == 0:
        raise click.BadParameter(f"{text!r} is not a size; write 512M, 2G or 1.5G")
    return int(float(found[1]) * _SIZE_BYTES[found[2].upper()])


keep_running_option: Callable[[Command], Command] = click.option(
    "--keep-running",
    "keep_s",
    metavar="[DURATION]",
    is_flag=False,
    flag_value="1h",
    callback=duration,
    help="Start the cluster of an invalid run once more, and keep it running so long (1h if no "
    "duration is given), to be looked at.",
)
budget_option: Callable[[Command], Command] = click.option(
    "--budget",
    "budget_s",
    metavar="DURATION",
    default="1h",
    show_default=True,
    callback=duration,
    help="Time limit of one pass of checks; a check that takes longer is unknown.",
)
memory_option: Callable[[Command], Command] = click.option(
    "--memory",
    "memory_bytes",
    metavar="SIZE",
    callback=_bytes,
    help="Memory limit of all checker workers together (2G). [default: 60 % of this machine]",
)


def emit_json(document: object) -> None:
    """Print a JSON document on standard output."""
    click.echo(json.dumps(document, indent=2, default=str))
