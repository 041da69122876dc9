"""The checks of what brokers are told of each other, offer, and show of partitions.

Entries, kernels and their tables. They are asked together with those of the control plane, which
read the same tables.
"""

from collections.abc import Mapping
from typing import Final

from checkers.cluster_checks import ClusterCheck, ClusterKernel
from checkers.visibility import (
    early_level,
    false_lowest,
    isr_went_back,
    nonrepeatable_isr,
    stale_isr,
)
from checkers.visibility.entries import ISR_ENTRIES, TOLD_ENTRIES

__all__ = ["TOLD_CHECKS"]

_KERNELS: Final[Mapping[str, tuple[ClusterKernel, tuple[str, ...]]]] = {
    false_lowest.NAME: (false_lowest.false_lowest_offsets, ()),
    early_level.NAME: (early_level.early_offers, ()),
    isr_went_back.NAME: (isr_went_back.isr_reads_that_went_back, ()),
    stale_isr.NAME: (stale_isr.stale_isr_reads, ("faults",)),
    nonrepeatable_isr.NAME: (nonrepeatable_isr.nonrepeatable_isr_reads, ()),
}
"""By name: the kernel, and tables that it takes besides those that its entry needs."""

TOLD_CHECKS: Final = tuple(
    ClusterCheck(
        entry=entry,
        kernel=_KERNELS[entry.name][0],
        tables=(*entry.needs, *_KERNELS[entry.name][1]),
    )
    for entry in (*TOLD_ENTRIES, *ISR_ENTRIES)
)
