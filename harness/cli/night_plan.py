"""`fencepost night --dry-run`, and the runs of another night that are made again."""

from dataclasses import replace

import click
from rich.text import Text

from fencepost.harness.cli.options import emit_json
from fencepost.harness.cli.tables import console, table_of
from fencepost.harness.series.night import NightPlan, NightStore, runs_ahead
from fencepost.history.failure import UsageError
from fencepost.report.notation import counted, integer, length, one_line


def not_valid_of(store: NightStore, plan: NightPlan) -> NightPlan:
    """Return the plan that repeats, with their seeds, the runs of a night that were not valid.

    Those that found what their scenario expects are left out. Raises UsageError if none is left.
    """
    before, done = store.read_plan(), store.read()
    only = [
        (next(i for i, cell in enumerate(before.cells) if run.is_of(cell)), run.seed)
        for run in done.runs
        if not run.holds
    ]
    if not only:
        raise UsageError(
            f"--only-failed: all {len(done.runs)} runs of {store.root} are valid, or as expected"
        )
    return replace(
        before,
        command=f"{plan.command} --only-failed {store.root.name}",
        time_s=None,
        left_out=(),
        only=tuple(only),
    )


def show_night(plan: NightPlan, *, as_json: bool) -> int:
    """Print what a night would run: a row a cell, or the runs that are made again."""
    if as_json:
        emit_json(
            {
                "night": plan.night,
                "first_seed": plan.first_seed,
                "time_s": plan.time_s,
                "runs": runs_ahead(plan, ()),
                "cells": [
                    {
                        "scenario": cell.scenario,
                        "on": cell.subject,
                        "runs": plan.entries[cell.entry].run_count,
                        "share": plan.entries[cell.entry].share or None,
                        "bound_s": cell.bound_s,
                        "command": ["fencepost", "run", *cell.arguments],
                    }
                    for cell in plan.cells
                ],
                "left_out": [
                    {"scenario": one.scenario, "reason": one.reason} for one in plan.left_out
                ],
            }
        )
        return 0
    table = table_of("scenario", "on", "runs", "each ended after")
    for index, cell in enumerate(plan.cells):
        entry = plan.entries[cell.entry]
        often = f"{entry.share:.0%} of the time, with others of its entry"
        if plan.only is not None:
            seeds = [str(seed) for one, seed in plan.only if one == index]
            often = f"seed {', '.join(seeds)}"
            if not seeds:
                continue
        elif entry.run_count is not None:
            often = integer(entry.run_count)
        cells = (cell.scenario, cell.subject, often, length(cell.bound_s * 1e9))
        table.add_row(*(Text(one_line(text)) for text in cells))
    console().print(table)
    ahead = runs_ahead(plan, ())
    much = (
        "runs for " + length((plan.time_s or 0) * 1e9) if ahead is None else counted(ahead, "run")
    )
    if ahead is not None and plan.time_s is not None:
        much += f", for {length(plan.time_s * 1e9)} at most"
    click.echo(f"{much}, from seed {plan.first_seed} on: {plan.command}")
    return 0
