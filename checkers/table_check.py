"""A check of tables of the cluster: a kernel of whole tables.

Control-plane tables are small compared with the records of a run (a metadata log has thousands of
rows, a tape some hundred thousand), so a kernel gets whole tables. A table that grows with the
records is spread over buckets by key; its check is called per bucket.
"""

from collections.abc import Callable
from dataclasses import dataclass

from checkers.entry import CatalogueEntry
from checkers.facts import Judged, Tables
from checkers.metadata.view import MetadataView

__all__ = ["TableCheck", "TableKernel"]

TableKernel = Callable[[Tables, MetadataView], Judged]
"""Given its tables, and the view of the run's metadata log if that is among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCheck:
    """A check by its entry, its kernel, and the tables that the kernel is given."""

    entry: CatalogueEntry
    kernel: TableKernel
    tables: tuple[str, ...] = ()
    """Those that the entry needs, and those that it takes if they were recorded. By default all
    that the entry needs."""
    by_bucket: bool = False
    """One call a bucket of `records` and `replica_records`, instead of one call."""

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the tables that the kernel is given."""
        return self.tables or self.entry.needs
