"""`fencepost scenarios`: the list of scenarios to run."""

import click

from harness.cli.options import as_json, emit_json
from harness.scenario.sources import find_scenario, library

__all__ = ["scenarios"]


@click.command()
@click.argument("name", required=False)
@as_json
def scenarios(name: str | None, as_json: bool) -> int:
    """List the scenarios that come with Fencepost, or print one (NAME) to start your own from."""
    if name is not None:
        find_scenario(name)
    from harness.cli.tables import console, table_of
    from harness.scenario.scenario import load_scenario

    if name is not None:
        scenario = load_scenario(find_scenario(name), [])
        if as_json:
            emit_json(scenario.document.data)
        else:
            click.echo(scenario.document.text, nl=False)
        return 0
    rows = [(known, path.parent.name, load_scenario(path, [])) for known, path in library().items()]
    if as_json:
        emit_json([{"name": n, "kind": kind, "title": s.title} for n, kind, s in rows])
        return 0
    table = table_of("scenario", "kind", "what it does")
    for known, kind, scenario in rows:
        table.add_row(known, kind, scenario.title)
    console().print(table)
    return 0
