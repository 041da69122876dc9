"""`fencepost results`: the stored runs; which are removed, thinned, or kept for good."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fencepost.harness.cli.options import as_json, duration, emit_json, results_option
from fencepost.history.failure import UsageError

if TYPE_CHECKING:
    from fencepost.harness.doctor.stored_runs import StoredRun

_VERDICTS = ("valid", "invalid", "unknown", "failed", "not checked", "running")


@click.command()
@click.argument("runs", metavar="[RUN]…", nargs=-1)
@click.option("--scenario", help="Only runs of this scenario.")
@click.option("--verdict", type=click.Choice(_VERDICTS), help="Only runs with this verdict.")
@click.option("--release", help="Only runs on a release that has this in its name (4.3.1).")
@click.option("--older", metavar="AGE", callback=duration, help="Only runs before that (36h).")
@click.option(
    "--keep-last",
    type=click.IntRange(0),
    metavar="N",
    help="All but the newest N of each scenario.",
)
@click.option("--remove", "action", flag_value="remove", help="Remove these runs.")
@click.option(
    "--thin",
    "action",
    flag_value="thin",
    help="Remove their evidence: what was found stays, and cannot be judged again.",
)
@click.option("--pin", "action", flag_value="pin", help="Never remove these runs.")
@click.option("--unpin", "action", flag_value="unpin", help="Take that back.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@results_option
@as_json
def results(
    runs: tuple[str, ...],
    action: str | None,
    results: Path,
    dry_run: bool,
    as_json: bool,
    **filters: Any,
) -> int:
    """List the stored runs, all or those named, with their sizes; remove, thin or pin them.

    Runs that are pinned, under way, or kept running are neither removed nor thinned.
    """
    if action is not None and not runs and all(value is None for value in filters.values()):
        raise UsageError(f"--{action}: say which runs: by name, or by a filter such as --older 7d")
    from fencepost.harness.doctor.stored_runs import stored_runs

    chosen = _chosen(stored_runs(results), runs, results, filters)
    if action is not None:
        chosen = _acted(chosen, action, dry_run=dry_run)
    if as_json:
        emit_json([one.as_data() for one in chosen])
    else:
        _show(chosen, results, action, dry_run=dry_run)
    return 0


def _chosen(
    found: "list[StoredRun]", named: tuple[str, ...], results: Path, filters: dict[str, Any]
) -> "list[StoredRun]":
    from fencepost.harness.doctor.stored_runs import beyond_newest
    from fencepost.history.run_directory import find_run

    scenario, verdict, release = (filters[name] for name in ("scenario", "verdict", "release"))
    roots = {find_run(text, results).root for text in named}
    before = None
    if filters["older"] is not None:
        before = datetime.now(UTC) - timedelta(seconds=filters["older"])
    chosen = [
        one
        for one in found
        if (not roots or one.run.root.resolve() in roots)
        and scenario in (None, one.scenario)
        and verdict in (None, one.verdict)
        and (release is None or release in one.release)
        and (before is None or one.started_at < before)
    ]
    keep = filters["keep_last"]
    return chosen if keep is None else beyond_newest(chosen, keep)


def _acted(chosen: "list[StoredRun]", action: str, *, dry_run: bool) -> "list[StoredRun]":
    """Do it, and return the runs to which it was done."""
    from fencepost.harness.doctor.stored_runs import pin, unpin
    from fencepost.history.thinned import thin

    if action == "remove":
        chosen = [one for one in chosen if one.may_go]
    elif action == "thin":
        judged = ("valid", "invalid", "unknown")
        chosen = [one for one in chosen if one.may_go and not one.thinned and one.verdict in judged]
    if dry_run:
        return chosen
    if action in ("pin", "unpin"):
        (pin if action == "pin" else unpin)(one.run for one in chosen)
    for one in chosen:
        if action == "remove":
            one.run.discard()
        elif action == "thin":
            thin(one.run)
    return chosen


def _show(chosen: "list[StoredRun]", results: Path, action: str | None, *, dry_run: bool) -> None:
    from rich.text import Text

    from fencepost.harness.cli.tables import console, table_of
    from fencepost.report.notation import counted, one_line, size, utc

    out = console()
    table = table_of("run", "verdict", "release", "seed", "size", "")
    for one in chosen:
        words = [word for word in ("pinned", "thinned") if getattr(one, word)]
        words += [] if one.kept_until is None else [f"kept running until {utc(one.kept_until)}"]
        marks = ", ".join(words)
        cells = (one.name, one.verdict, one.release, str(one.seed), size(one.size_bytes), marks)
        table.add_row(*(Text(one_line(cell)) for cell in cells))
    if chosen:
        out.print(table)
    past = {"remove": "removed", "thin": "thinned", "pin": "pinned", "unpin": "unpinned"}
    did = "" if action is None else f", {'would be ' if dry_run else ''}{past[action]}"
    total = size(sum(one.size_bytes for one in chosen))
    out.print(f"{results}: {counted(len(chosen), 'run')}, {total}{did}", markup=False)
