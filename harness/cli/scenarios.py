"""`fencepost scenarios`: the list of scenarios to run."""

from pathlib import Path
from typing import Any, Final

import click

from fencepost.harness.cli.options import as_json, emit_json, set_option
from fencepost.harness.scenario.sources import find_scenario, library

_ORDER: Final = ("nightly", "controls", "bugs", "rules")


@click.command()
@click.argument("name", required=False)
@click.option("--word", help="Only those with this word in the name, the title or the issue.")
@click.option("--kind", help="Only those of this kind (nightly, bugs, controls, rules).")
@click.option("--system", help="Only those of this system (kafka, zookeeper).")
@set_option
@as_json
def scenarios(
    name: str | None, word: str | None, kind: str | None, system: str | None, **flags: Any
) -> int:
    """List the scenarios that come with Fencepost, or print one (NAME) to start your own from.

    With --set it is printed as it would be run: what it extends and its parameters filled in.
    In a pipe each is a line: name, kind and title, with tabs in between.
    """
    if name is not None:
        return _show_one(find_scenario(name), flags["set"], as_json=flags["as_json"])
    from fencepost.clusters.systems import SYSTEMS, system_of
    from fencepost.harness.cli.tables import console, table_of
    from fencepost.harness.scenario.scenario import load_scenario
    from fencepost.history.failure import UsageError
    from fencepost.nemesis.words import did_you_mean

    if flags["set"]:
        raise UsageError("--set is for one scenario: name it")
    rows = [(known, path.parent.name, load_scenario(path, [])) for known, path in library().items()]
    for flag, asked, there in (
        ("--kind", kind, {of for _, of, _ in rows}),
        ("--system", system, set(SYSTEMS)),
    ):
        if asked is not None and asked not in there:
            raise UsageError(f"{flag}: no {asked!r}; {did_you_mean(asked, there)}")
    rows = [
        (known, of, scenario)
        for known, of, scenario in rows
        if kind in (None, of)
        and system in (None, system_of(scenario.cluster).name)
        and (word or "").lower() in f"{known} {scenario.title} {scenario.issue or ''}".lower()
    ]
    # What is run first, first: bugs are looked up by name.
    rows.sort(key=lambda row: (_ORDER.index(row[1]) if row[1] in _ORDER else len(_ORDER), row[0]))
    if flags["as_json"]:
        emit_json(
            [
                {"name": n, "kind": of, "system": system_of(s.cluster).name, "title": s.title}
                for n, of, s in rows
            ]
        )
        return 0
    out = console()
    if not out.is_terminal:
        for known, of, scenario in rows:
            click.echo(f"{known}\t{of}\t{scenario.title}")
        return 0
    table = table_of("scenario", "kind", "what it does")
    for known, of, scenario in rows:
        table.add_row(known, of, scenario.title)
    out.print(table)
    return 0


def _show_one(path: Path, filled_in: tuple[str, ...], *, as_json: bool) -> int:
    from fencepost.harness.scenario.flags import flag_overrides
    from fencepost.harness.scenario.scenario import load_scenario

    document = load_scenario(path, flag_overrides({"set": filled_in})).document
    if as_json:
        emit_json(document.data)
    else:
        click.echo(document.text if filled_in else path.read_text(encoding="utf-8"), nl=False)
    return 0
