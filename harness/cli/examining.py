"""The bodies of `fencepost doctor` and `fencepost clean`."""

from pathlib import Path

import click
from rich.markup import escape

from harness.cli.options import emit_json
from harness.cli.tables import console, table_of
from harness.doctor.clean import clean_machine
from harness.doctor.doctor import examine
from harness.doctor.finding import DoctorFinding

__all__ = ["clean", "doctor"]


def doctor(results: Path, inventory: Path | None, as_json: bool) -> int:
    """Say what this machine can do, and what to install for the rest."""
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


def _mark(finding: DoctorFinding) -> str:
    if finding.ok:
        return "[green]ok[/]"
    return "[red]no[/]" if finding.needed else "[yellow]--[/]"


def clean(results: Path, as_json: bool) -> int:
    """End what a dead run left behind: its processes, its half-written cache entries, its state."""
    done = clean_machine(results)
    if as_json:
        emit_json(done)
    else:
        click.echo("\n".join(done) if done else "nothing was left behind")
    return 0
