"""Helpers of the plants: draw, change and remove rows of a copied run."""

from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

import pyarrow as pa

from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.history.roles import ZOOKEEPER, role_of

Row = dict[str, Any]
FAR: Final = 1_000_000
"""Added to offsets and values, it makes ones that a short run does not have."""
_READ: Final = ("read", "topic", "partition")
SOME: Final = 20
"""As many records are lost where several are."""


def edited(
    run: CopiedRun, name: str, columns: Sequence[str], edit: Callable[[Row], Mapping[str, Any]]
) -> bool:
    """Change rows of a table: `edit` is given these columns of each, and returns what it has then.

    It is asked file by file, row by row, in their order.
    """

    def changed(rows: pa.Table) -> pa.Table:
        found = {
            place: news
            for place, row in enumerate(rows.select(list(columns)).to_pylist())
            if (news := edit(row))
        }
        for column in sorted({column for news in found.values() for column in news}):
            values = rows[column].to_pylist()
            for place, news in found.items():
                values[place] = news.get(column, values[place])
            at = rows.schema.get_field_index(column)
            field = rows.schema.field(column)
            rows = rows.set_column(at, field, pa.array(values, field.type))
        return rows

    return run.has(name) and run.change(name, changed)


def without(
    run: CopiedRun, name: str, columns: Sequence[str], is_lost: Callable[[Row], bool]
) -> bool:
    """Take rows of a table away."""

    def left(rows: pa.Table) -> pa.Table:
        told = rows.select(list(columns)).to_pylist()
        return rows.filter(pa.array([not is_lost(row) for row in told], pa.bool_()))

    return run.has(name) and run.change(name, left)


def rows_of(run: CopiedRun, name: str) -> list[Row]:
    """Return the rows of a table; none if the run has no such table."""
    rows: list[Row] = run.table(name).to_pylist() if run.has(name) else []
    return rows


def on_zookeeper(run: CopiedRun) -> bool:
    """Return whether ZooKeeper has the run's metadata, or has had them."""
    return any(role_of(node) == ZOOKEEPER for node in run.manifest.node_ids)


def drawn_row(draw: Random, run: CopiedRun, name: str, is_fit: Callable[[Row], bool]) -> Row | None:
    """Draw a row of a table that fits; None if there is none."""
    fit = [row for row in rows_of(run, name) if is_fit(row)]
    return draw.choice(fit) if fit else None


def count_anew(run: CopiedRun) -> None:
    """Let operations count the records that they have."""
    counts = run.table("records").group_by("operation").aggregate([("operation", "count")])
    columns = (counts[name].to_pylist() for name in ("operation", "operation_count"))
    known = dict(zip(*columns, strict=True))
    edited(run, "operations", ("index",), lambda row: {"record_count": known.get(row["index"], 0)})


def is_same(row: Row, other: Row, *names: str) -> bool:
    """Return whether two rows have the same in these columns."""
    return all(row[name] == other[name] for name in names)


def change_one(
    run: CopiedRun,
    draw: Random,
    name: str,
    by: Sequence[str],
    *,
    is_fit: Callable[[Row], bool],
    news: Callable[[Row], Mapping[str, Any]],
) -> bool:
    """Change a drawn row that fits, and what has the same in the columns `by`.

    `news`: of the row, what it has then. Return whether there was one, and it is another one now.
    """
    found = drawn_row(draw, run, name, is_fit)
    if found is None:
        return False
    changed = news(found)
    return edited(run, name, by, lambda row: changed if is_same(row, found, *by) else {})


def change_shown(
    run: CopiedRun, draw: Random, is_fit: Callable[[Row], bool], news: Callable[[Row], Row]
) -> bool:
    """Change what a broker showed before the end, after which no log tells what was so."""
    until_ns = run.manifest.healed_ns or 0

    def is_judged(row: Row) -> bool:
        is_shown = row["error"] in (None, "NONE") and row["return_ns"] is not None
        return is_shown and row["return_ns"] < until_ns and is_fit(row)

    return change_one(run, draw, "describes", _READ, is_fit=is_judged, news=news)
