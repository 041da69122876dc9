"""A check of tables of the cluster: kernels of whole tables, or of slices of them.

The tables of a short run are small, and each kernel gets them whole. Those of a long night or of a
wide cluster are not; a kernel then gets the slices that its part of the check is about
(`checkers.slices`), one call each, and answers for the partitions or brokers of its slice. What is
about the run as a whole (the quorum, the order of its log) stays one call, and such a kernel says
which frames of the tape it reads, and holds no more in memory than it compares.
"""

from collections.abc import Callable
from dataclasses import dataclass

from fencepost.checkers.entry import CatalogueEntry
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.slices import Split
from fencepost.checkers.sources import Keep, everything

TableKernel = Callable[[Tables, MetadataView], Judged]
"""Given its tables, and the view of the run's metadata log if that is among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicedKernel:
    """A part of a check: what it judges is the cases of its kernel."""

    kernel: TableKernel
    split: Split = Split.WHOLE
    apis: tuple[str, ...] = ()
    """Of a long run's `wire` a kernel is given the frames of these, unless it is about partitions:
    those share what they read. Empty: of all."""
    pick: Keep = everything
    """Of those, the rows that the kernel is given, batch by batch of some columns of `wire`."""
    records: Keep = everything
    """Of `records`, the rows that the kernel is given."""
    unplaced: bool = False
    """Of a stretch of offsets it is given the records without an offset as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCheck:
    """A check by its entry, its kernel, and the tables that the kernel is given."""

    entry: CatalogueEntry
    kernel: TableKernel
    """Of whole tables, as those of a short run are given."""
    tables: tuple[str, ...] = ()
    """Those that the entry needs, and those that it takes if they were recorded. By default all
    that the entry needs."""
    split: Split = Split.WHOLE
    apis: tuple[str, ...] = ()
    """As of a `SlicedKernel`: the frames of a long run's tape that the kernel reads."""
    records: Keep = everything
    unplaced: bool = False
    """Both as of a `SlicedKernel`."""
    parts: tuple[SlicedKernel, ...] = ()
    """The kernels of a long run, each under its split, if not that one; they judge the same."""

    @property
    def given(self) -> tuple[str, ...]:
        """The names of the tables that the kernels are given."""
        return self.tables or self.entry.needs

    @property
    def whole(self) -> SlicedKernel:
        """The check as one part."""
        return SlicedKernel(
            kernel=self.kernel,
            split=self.split,
            apis=self.apis,
            records=self.records,
            unplaced=self.unplaced,
        )

    @property
    def by_part(self) -> tuple[SlicedKernel, ...]:
        """The parts of the check on a long run."""
        return self.parts or (self.whole,)
