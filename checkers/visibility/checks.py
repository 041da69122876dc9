"""The checks of what brokers are told of each other, and offer: entries, kernels and their tables.

They are asked together with those of the control plane, which read the same tables.
"""

from collections.abc import Mapping
from typing import Final

from checkers.cluster_checks import ClusterCheck, ClusterKernel
from checkers.visibility import early_level, false_lowest
from checkers.visibility.entries import TOLD_ENTRIES

__all__ = ["TOLD_CHECKS"]

_KERNELS: Final[Mapping[str, ClusterKernel]] = {
    false_lowest.NAME: false_lowest.false_lowest_offsets,
    early_level.NAME: early_level.early_offers,
}

TOLD_CHECKS: Final = tuple(
    ClusterCheck(entry=entry, kernel=_KERNELS[entry.name], tables=entry.needs)
    for entry in TOLD_ENTRIES
)
