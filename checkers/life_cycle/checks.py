"""The checks of the life cycle of brokers: entries, kernels and the tables that each is given.

They are asked together with those of the control plane, which read the same tables.
"""

from collections.abc import Mapping
from typing import Final

from checkers.cluster_checks import ClusterCheck, ClusterKernel
from checkers.life_cycle import (
    duplicate_id,
    incarnation_went_back,
    refused_but_running,
    served_while_fenced,
    unfenced_too_early,
    unsafe_shutdown,
)
from checkers.life_cycle.entries import LIFE_CYCLE_ENTRIES

__all__ = ["LIFE_CYCLE_CHECKS"]

_KERNELS: Final[Mapping[str, ClusterKernel]] = {
    refused_but_running.NAME: refused_but_running.refused_but_running,
    duplicate_id.NAME: duplicate_id.duplicate_ids,
    served_while_fenced.NAME: served_while_fenced.served_while_fenced,
    unsafe_shutdown.NAME: unsafe_shutdown.unsafe_shutdowns,
    incarnation_went_back.NAME: incarnation_went_back.incarnations_that_went_back,
    unfenced_too_early.NAME: unfenced_too_early.unfenced_too_early,
}

LIFE_CYCLE_CHECKS: Final = tuple(
    ClusterCheck(entry=entry, kernel=_KERNELS[entry.name], tables=entry.needs)
    for entry in LIFE_CYCLE_ENTRIES
)
