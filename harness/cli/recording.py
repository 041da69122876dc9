"""The body of `fencepost track-record`: the record of reproductions, and what is told of it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from rich.text import Text

from fencepost.clusters.provision.java import find_java
from fencepost.clusters.systems import system_of
from fencepost.harness.cli.options import emit_json
from fencepost.harness.cli.reproducing import reproduction_json
from fencepost.harness.cli.tables import console, table_of
from fencepost.harness.machine import machine_facts
from fencepost.harness.progress import terminal_progress
from fencepost.harness.run.spark_start import SparkStart
from fencepost.harness.scenario.on_other_system import key_of_release
from fencepost.harness.scenario.scenario import Scenario, load_scenario
from fencepost.harness.scenario.sources import library
from fencepost.harness.series.bounds import untried_bounds
from fencepost.harness.series.reproduction import Reproduction
from fencepost.harness.series.track_record import (
    HEADS,
    add_to_track_record,
    as_named_now,
    notes,
    read_track_record,
    rows,
    table,
    with_table,
    without_series,
)
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import UsageError

if TYPE_CHECKING:
    from fencepost.harness.series.finding_table import FindingRow

_RECORD_WIDTHS: Final = (19, 8, 8, 7, 11, 10, 30)
"""The columns of the track record in a pipe: names of checks are whole, long labels are folded."""
_ALL_CORES: Final = "local[*]"


def track_record(
    *,
    add: tuple[Path, ...],
    write: Path | None,
    missing: bool,
    findings: bool,
    seeds: int | None,
    plays: tuple[str, ...],
    results: Path,
    as_json: bool,
) -> int:
    """Show what reproductions found: the newest series of each scenario and release."""
    if findings and seeds is not None:
        return _show_plays(seeds, plays, results, as_json=as_json)
    directory = results / "track-record"
    for path in add:
        click.echo(add_to_track_record(path, directory), err=True)
    recorded = as_named_now(read_track_record(directory), _scenarios())
    if missing:
        return _show_missing(recorded, as_json=as_json)
    if findings and write is not None:
        return _write_findings(recorded, directory, write)
    if findings:
        return _show_findings(recorded, results, as_json=as_json)
    if write is not None:
        with_table(write, table(recorded))
        click.echo(write, err=True)
    if as_json:
        emit_json([reproduction_json(one, None) for one in recorded])
    elif write is None:
        _show_record(recorded)
    return 0


def _scenarios() -> Iterator[Scenario]:
    return (load_scenario(path, []) for path in library().values())


def _show_record(recorded: Sequence[Reproduction]) -> None:
    shown = table_of(*HEADS)
    shown.collapse_padding = True
    for column, width in zip(shown.columns, _RECORD_WIDTHS, strict=True):
        column.max_width = width
    for row in rows(recorded):
        shown.add_row(*(_plain(cell) for cell in row))
    out = console()
    out.print(shown if shown.rows else "Nothing is on record yet.")
    for note in notes(recorded):
        click.echo(_plain(note))


def _plain(markdown: str) -> Text:
    return Text(markdown.replace("`", "").replace("**", ""))


def _show_findings(recorded: Sequence[Reproduction], results: Path, *, as_json: bool) -> int:
    # With all checks: what only reproduces does not wait for them.
    from fencepost.harness.series.finding_table import of_record, of_runs

    stored, troubles = of_runs(results)
    for trouble in troubles:
        click.echo(trouble, err=True)
    return _say_findings([*of_record(recorded), *stored], as_json=as_json)


def _write_findings(recorded: Sequence[Reproduction], directory: Path, page: Path) -> int:
    """Draw the page of what plays told from the record."""
    from fencepost.harness.series.finding_record import read_finding_records
    from fencepost.harness.series.finding_table import findings_page, of_plays, of_record
    from fencepost.harness.series.firing import firing_plays, unfired_plays

    records = read_finding_records(directory / "findings")
    places = ((play, records.get((play.play, play.made_by))) for play in firing_plays())
    rows = of_plays((play, () if one is None else one.trials) for play, one in places)
    write_atomically(page, findings_page(rows, unfired_plays(), of_record(recorded)).encode())
    click.echo(page, err=True)
    return 0


def _show_plays(seeds: int, plays: Sequence[str], results: Path, *, as_json: bool) -> int:
    """Carry the plays out, store what each told, and show it."""
    from fencepost.harness.series.finding_record import FindingRecord, write_finding_record
    from fencepost.harness.series.finding_table import of_plays
    from fencepost.harness.series.firing import FiringPlay, ToldTrial, firing_plays, told_trials

    chosen = [one for one in firing_plays() if not plays or one.play in plays]
    for name in plays:
        if name not in {one.play for one in chosen}:
            raise UsageError(f"--play {name}: not one of the plays that show a bug in virtual time")
    java = find_java()
    told: list[tuple[FiringPlay, list[ToldTrial]]] = []
    with terminal_progress() as progress:
        session = SparkStart(java, master=_ALL_CORES, say=progress.say).session()
        for number, play in enumerate(chosen, start=1):
            started = datetime.now(UTC)
            trials = told_trials(play, range(1, seeds + 1), session=session)
            told.append((play, trials))
            record = FindingRecord(
                play=play.play,
                made_by=play.made_by,
                command=f"fencepost track-record --findings --seeds {seeds} --play {play.play}",
                started_at=started.isoformat(timespec="seconds"),
                fencepost_version=version("fencepost"),
                machine=machine_facts(),
                trials=tuple(trials),
            )
            write_finding_record(record, results / "track-record" / "findings")
            (row,) = of_plays(told[-1:])
            place = f"play {number} of {len(chosen)}: {play.play} {play.made_by}"
            progress.say(f"{place}: one finding in {' of '.join(row.cells()[2].split('/'))}")
    return _say_findings(of_plays(told), as_json=as_json)


def _say_findings(found: "Sequence[FindingRow]", *, as_json: bool) -> int:
    from fencepost.harness.series.finding_table import HEADS as FINDING_HEADS
    from fencepost.harness.series.finding_table import shared

    several = shared(found)
    if as_json:
        emit_json([dict(zip(FINDING_HEADS, one.cells(), strict=True)) for one in found])
    else:
        shown = table_of(*FINDING_HEADS)
        for one in found:
            shown.add_row(*one.cells())
        console().print(shown if shown.rows else "No run has a finding yet.")
    for name, bugs in several.items():
        click.echo(f"plays of different bugs tell {name}: {', '.join(bugs)}", err=True)
    return 0 if all(one.steady for one in found) and not several else 1


def _show_missing(recorded: Sequence[Reproduction], *, as_json: bool) -> int:
    commands = [
        f"fencepost reproduce {scenario.name} --{_key(scenario)} {release} --runs 10"
        for scenario, release in without_series(_scenarios(), recorded)
    ]
    untried = [
        (scenario, one)
        for scenario in _scenarios()
        if (line := system_of(scenario.cluster).makes[0].line)
        for one in untried_bounds(scenario.expect, line)
    ]
    if as_json:
        bounds = [{"scenario": scenario.name, **asdict(one)} for scenario, one in untried]
        emit_json({"commands": commands, "untried_bounds": bounds})
    else:
        for command in commands:
            click.echo(command)
        for scenario, one in untried:
            say = f'{scenario.name}: "{one.bound}" is not shown: {one.untried} was not tried'
            click.echo(say)
    return 1 if commands or untried else 0


def _key(scenario: Scenario) -> str:
    return key_of_release(system_of(scenario.cluster))
