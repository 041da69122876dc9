"""The grid of strikes and windows of a series, on a terminal, in a pipe and in a log."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fencepost.checkers.grounds.windows import WindowKind
from fencepost.harness.cli.tables import table_of
from fencepost.harness.series.window_grid import WindowGrid
from fencepost.report.notation import counted, integer, one_line

_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SUMS: Final[Mapping[str, Callable[[WindowKind], int]]] = {
    "laid": lambda kind: kind.laid_count,
    "opened": lambda kind: kind.opened_count,
    "struck": lambda kind: kind.struck_count,
    "closed unused": lambda kind: kind.unused_count,
}
_GAP: Final = 2
"""The columns of a terminal between two of a table."""


def say_windows(grid: WindowGrid, out: Console, *, of: str = "") -> None:
    """Print one row per strike, one column per kind of window; empty where no strike took effect.

    Columns that do not fit beside each other go on in a table below. Nothing is said of runs whose
    faults have no windows.
    """
    unrecorded = grid.run_count - grid.recorded_count
    if unrecorded:
        runs = counted(unrecorded, "run")
        out.print(f"windows{of} are not recorded in {runs}", markup=False)
    if not grid.kinds:
        return
    runs = counted(grid.recorded_count, "run")
    out.print(f"windows{of}, {runs}: in how many each strike took effect", markup=False)
    for table in _tables(grid, width=out.width):
        out.print(table)


def _tables(grid: WindowGrid, *, width: int) -> Iterator[Table]:
    names = [*map(one_line, grid.strikes), *_SUMS]
    room = width - max(map(len, names))
    columns: list[WindowKind] = []
    for kind in grid.kinds:
        if columns and sum(map(_width, [*columns, kind])) > room:
            yield _table(grid.strikes, columns)
            columns = []
        columns.append(kind)
    yield _table(grid.strikes, columns)


def _table(strikes: Sequence[str], kinds: Sequence[WindowKind]) -> Table:
    table = table_of("")
    for kind in kinds:
        # Text, never markup: the names stand in files of a run.
        table.add_column(Text("\n".join(_head(kind))), justify="right", overflow="fold")
    for strike in strikes:
        struck = (kind.strikes.get(strike, 0) for kind in kinds)
        table.add_row(Text(one_line(strike)), *(integer(n) if n else "" for n in struck))
    for name, count in _SUMS.items():
        table.add_row(Text(name, "dim"), *(Text(integer(count(kind)), "dim") for kind in kinds))
    return table


def _head(kind: WindowKind) -> list[str]:
    """Return the words of a kind, each a line: `Alter`, `Partition`, `request`."""
    return _HUMP.sub(" ", one_line(kind.kind)).split()


def _width(kind: WindowKind) -> int:
    return _GAP + max(map(len, [*_head(kind), integer(kind.laid_count)]))
