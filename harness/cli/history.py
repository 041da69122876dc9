"""`fencepost history`: histories of other tools in, ours out, and made-up ones."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import click

from fencepost.harness.cli.options import as_json, emit_json, results_option
from fencepost.harness.histories.built_run import KAFKA
from fencepost.harness.histories.format import Format
from fencepost.harness.seeds import SEED_MAX, new_seed
from fencepost.history.failure import HarnessError
from fencepost.history.models import OPEN_MODELS, Isolation
from fencepost.history.run_directory import find_run
from fencepost.history.thinned import refuse_thinned

_MODELS = click.Choice([*map(str, OPEN_MODELS), KAFKA])
_FORMATS = click.Choice([str(one) for one in Format])
_RATE = click.FloatRange(0, 1)
_STANDARD = "-"


@click.group()
def history() -> None:
    """Take histories of other tools in, hand ours out, make some up."""


@history.command("import")
@click.argument("file", metavar="FILE")
@click.option("--format", "notation", type=_FORMATS, required=True, help="Format of FILE.")
@click.option("--model", type=_MODELS, required=True, help="Kind of object that operations are on.")
@click.option(
    "--isolation",
    type=click.Choice([str(one) for one in Isolation]),
    help="Isolation level that transactions were promised (list-append).",
)
@click.option(
    "--name", default="imported", show_default=True, help="Scenario name to store the run under."
)
@click.option(
    "--independent",
    is_flag=True,
    help="Read values as a key and a value, as jepsen.independent has them.",
)
@click.option("--idempotent", is_flag=True, help="No value may stand in a log twice (kafka).")
@results_option
@as_json
def import_history(file: str, *, results: Path, as_json: bool, **flags: Any) -> int:
    """Make FILE ('-': standard input) a run that `fencepost check` judges."""
    from fencepost.harness.histories.files import Import, imported

    isolation = flags["isolation"]
    what = Import(
        path=None if file == _STANDARD else Path(file),
        format=Format(flags["notation"]),
        model=flags["model"],
        name=flags["name"],
        isolation=Isolation(isolation) if isolation else None,
        keyed_values=flags["independent"],
        idempotent=flags["idempotent"],
        command=_import_command(file, flags),
    )
    done = imported(what, results=results)
    left_out = {what: count for what, count in sorted(done.left_out.items()) if count}
    for kind, count in left_out.items():
        click.echo(f"left out: {count} {kind}", err=True)
    if as_json:
        emit_json({"run": done.run.root, "left_out": left_out})
    else:
        _say_check(done.run.root)
    return 0


@history.command("export")
@click.argument("run", metavar="RUN")
@click.argument("file", metavar="[FILE]", default=_STANDARD)
@click.option("--format", "notation", type=_FORMATS, required=True, help="Format to write.")
@click.option(
    "--events", is_flag=True, help="Write a line for each invocation and each completion (jsonl)."
)
@results_option
def export_history(run: str, file: str, notation: str, events: bool, results: Path) -> int:
    """Write RUN's history to FILE ('-': standard output)."""
    found = find_run(run, results)
    refuse_thinned(found)
    from fencepost.harness.histories.files import exported

    with _output(file) as output:
        exported(found, output, notation=Format(notation), as_events=events)
    return 0


@history.command()
@click.option("--model", type=_MODELS, required=True, help="Kind of object that operations are on.")
@click.option(
    "--operations",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Number of operations: transactions of list-append, sends of kafka.",
)
@click.option(
    "--keys", type=click.IntRange(1), default=10, show_default=True, help="Number of keys."
)
@click.option(
    "--clients", type=click.IntRange(1), default=20, show_default=True, help="Number of clients."
)
@click.option(
    "--crash-rate",
    type=_RATE,
    default=0.01,
    show_default=True,
    help="Share of operations whose client crashes.",
)
@click.option(
    "--fail-rate",
    type=_RATE,
    default=0.01,
    show_default=True,
    help="Share of operations that fail.",
)
@click.option(
    "--plant",
    "planted",
    multiple=True,
    metavar="ANOMALY",
    help="Anomaly to plant. Can be repeated.",
)
@click.option(
    "--seed", type=click.IntRange(0, SEED_MAX), help="Seed: the same makes the same history."
)
@click.option(
    "--name", default="generated", show_default=True, help="Scenario name to store the run under."
)
@results_option
@as_json
def generate(seed: int | None, *, results: Path, as_json: bool, **flags: Any) -> int:
    """Make up a history, right or with anomalies planted, to see a checker pass and fire."""
    from fencepost.harness.histories.synthetic import SyntheticHistory, synthetic_run

    chosen = new_seed() if seed is None else seed
    run = synthetic_run(
        SyntheticHistory(seed=chosen, command=_generate_command(chosen, flags), **flags),
        results=results,
    )
    if as_json:
        emit_json({"run": run.root, "seed": chosen})
    else:
        _say_check(run.root)
    return 0


def _generate_command(seed: int, flags: dict[str, Any]) -> str:
    words = ["fencepost", "history", "generate"]
    for name in ("model", "operations", "keys", "clients", "crash_rate", "fail_rate", "name"):
        words += [f"--{name.replace('_', '-')}", str(flags[name])]
    for lie in flags["planted"]:
        words += ["--plant", lie]
    return shlex.join([*words, "--seed", str(seed)])


def _import_command(file: str, flags: dict[str, Any]) -> str:
    words = ["fencepost", "history", "import", file]
    words += ["--format", flags["notation"], "--model", flags["model"]]
    words += ["--isolation", flags["isolation"]] if flags["isolation"] else []
    words += [f"--{flag}" for flag in ("independent", "idempotent") if flags[flag]]
    return shlex.join([*words, "--name", flags["name"]])


def _say_check(root: Path) -> None:
    """Print the command that judges the run."""
    click.echo(f"fencepost check {shlex.quote(str(root))}")


@contextmanager
def _output(file: str) -> Iterator[BinaryIO]:
    """Open standard output, or a file that is there whole or not at all."""
    if file == _STANDARD:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    path = Path(file)
    beside = path.with_name(f".{path.name}.part")
    try:
        with beside.open("wb") as output:
            yield output
        beside.replace(path)
    except OSError as error:
        raise HarnessError(f"cannot write {path}: {error.strerror}") from error
    finally:
        beside.unlink(missing_ok=True)
