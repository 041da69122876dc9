"""`fencepost doctor` and `fencepost clean`: this machine, before and after runs."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from fencepost.harness.cli.options import as_json, emit_json, results_option

if TYPE_CHECKING:
    from fencepost.harness.doctor.doctor import DoctorFinding


@click.command()
@results_option
@click.option(
    "--inventory",
    type=click.Path(path_type=Path),
    help="Inventory of machines to look at as well.",
)
@as_json
def doctor(results: Path, inventory: Path | None, as_json: bool) -> int:
    """Say what this machine can do, and what to install for the rest."""
    from rich.markup import escape

    from fencepost.harness.cli.tables import console, table_of
    from fencepost.harness.doctor.doctor import examine

    findings = examine(results, inventory)
    if as_json:
        emit_json([finding.as_data() for finding in findings])
    else:
        table = table_of("", "what", "found", "faults", "way out")
        for finding in findings:
            words = (finding.what, finding.found, " ".join(finding.faults), finding.way_out)
            table.add_row(_mark(finding), *map(escape, words))
        console().print(table)
    return 0 if all(finding.ok for finding in findings if finding.needed) else 255


@click.command()
@results_option
@as_json
def clean(results: Path, as_json: bool) -> int:
    """End what a dead run left behind: its processes, its half-written cache entries, its state."""
    from fencepost.harness.doctor.clean import clean_machine

    done = clean_machine(results)
    if as_json:
        emit_json(done)
    else:
        click.echo("\n".join(done) if done else "nothing was left behind")
    return 0


def _mark(finding: "DoctorFinding") -> str:
    if finding.ok:
        return "[green]ok[/]"
    return "[red]no[/]" if finding.needed else "[yellow]--[/]"
