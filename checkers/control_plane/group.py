"""The checks of the control plane: entries, kernels and the tables that each is given."""

from collections.abc import Mapping
from typing import Final

from checkers.cluster_checks import ClusterCheck, ClusterKernel, cluster_group
from checkers.control_plane import nonlinearizable_isr, stale_epoch_join
from checkers.control_plane.entries import CONTROL_PLANE_ENTRIES

__all__ = ["CONTROL_PLANE"]

_KERNELS: Final[Mapping[str, tuple[ClusterKernel, tuple[str, ...]]]] = {
    nonlinearizable_isr.NAME: (nonlinearizable_isr.nonlinearizable_isrs, ("describes",)),
    stale_epoch_join.NAME: (stale_epoch_join.stale_epoch_joins, ()),
}
"""By name: the kernel, and tables that it takes besides those that its entry needs."""

CONTROL_PLANE: Final = cluster_group(
    "the control plane",
    [
        ClusterCheck(
            entry=entry,
            kernel=_KERNELS[entry.name][0],
            tables=(*entry.needs, *_KERNELS[entry.name][1]),
        )
        for entry in CONTROL_PLANE_ENTRIES
    ],
)
