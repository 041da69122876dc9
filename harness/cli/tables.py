"""Tables on a terminal, in a pipe and in a log: as wide as it is, or 100 columns, and never cut."""

from typing import Final

from rich.console import Console
from rich.table import Table

_PLAIN_WIDTH: Final = 100
"""The width of output that has none, being no terminal. Longer cells go on in the next line."""


def console(*, aside: bool = False) -> Console:
    """Return the console for a table and for the sentences around it, which are not wrapped.

    `aside`: to standard error, because standard output belongs to a JSON document.
    """
    found = Console(stderr=aside, soft_wrap=True, highlight=False)
    if not found.is_terminal:
        found.width = _PLAIN_WIDTH
    return found


def table_of(*heads: str) -> Table:
    """Return an empty table without lines.

    A word that is wider than its column is folded, not cut.
    """
    table = Table(box=None, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    return table
