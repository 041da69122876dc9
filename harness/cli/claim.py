"""`fencepost claim`."""

from dataclasses import asdict
from pathlib import Path

import click

from fencepost.harness.cli.options import as_json, emit_json, results_option
from fencepost.history.failure import UsageError


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
def claim(name: str | None, write: Path | None, results: Path, as_json: bool) -> int:
    """Prove claim NAME by its command, and store what came of it; without NAME, list all.

    From a checkout, whose results/claims.toml lists the claims. Exit codes: 0 proved, and 1 if one
    is not.
    """
    from fencepost.harness.series.claims import (
        CLAIMS_BEGIN,
        CLAIMS_END,
        claims_table,
        prove,
        read_claims,
        read_record,
        write_record,
    )
    from fencepost.harness.series.track_record import with_table
    from fencepost.nemesis.words import did_you_mean

    claims, directory = read_claims(results / "claims.toml"), results / "track-record" / "claims"
    if write is not None:
        with_table(write, claims_table(claims, directory), markers=(CLAIMS_BEGIN, CLAIMS_END))
        click.echo(write, err=True)
        return 0
    if name is not None:
        if name not in claims:
            raise UsageError(f"no claim {name!r}: {did_you_mean(name, claims)}")
        record = prove(name, claims[name], say=lambda line: click.echo(line, err=True))
        click.echo(write_record(record, directory), err=True)
    names = list(claims) if name is None else [name]
    records = {one: read_record(one, directory) for one in names}
    proved = {one: bool(it and it.proves(claims[one])) for one, it in records.items()}
    if as_json:
        emit_json(
            [
                {"claim": one, "proved": proved[one], "record": it and asdict(it)}
                for one, it in records.items()
            ]
        )
    else:
        for one in names:
            click.echo(f"{'proved' if proved[one] else 'NO RECORD'}  {one}: {claims[one].says}")
    return 0 if all(proved.values()) else 1
