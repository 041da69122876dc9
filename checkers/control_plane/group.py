"""The checks of the control plane, and those that read the same tables: one group, one Spark job.

To read a tape and to replay a log takes longer than most checks do; the checks of a group share it.
"""

from collections.abc import Mapping
from typing import Final

from checkers.cluster_checks import ClusterCheck, ClusterKernel, cluster_group
from checkers.control_plane import (
    epoch_check_bypassed,
    epochs,
    fencing,
    illegal_isr,
    illegal_transition,
    ineligible_member,
    lost_metadata_write,
    metadata_divergence,
    nonlinearizable_isr,
    shared_identity,
    stale_controller,
    stale_epoch_join,
    stuck_isr,
    stuck_replica,
    two_leaders,
    unfetched_epoch,
)
from checkers.control_plane.entries import CONTROL_PLANE_ENTRIES
from checkers.grounds.node_checks import GENERAL_CHECKS
from checkers.life_cycle.checks import LIFE_CYCLE_CHECKS
from checkers.visibility.checks import TOLD_CHECKS

__all__ = ["CONTROL_PLANE"]

_KERNELS: Final[Mapping[str, tuple[ClusterKernel, tuple[str, ...]]]] = {
    nonlinearizable_isr.NAME: (nonlinearizable_isr.nonlinearizable_isrs, ("describes",)),
    stale_epoch_join.NAME: (stale_epoch_join.stale_epoch_joins, ()),
    unfetched_epoch.NAME: (unfetched_epoch.unfetched_epochs, ()),
    ineligible_member.NAME: (ineligible_member.ineligible_members, ()),
    two_leaders.NAME: (two_leaders.two_leaders, ("wire", "describes", "quorum_claims")),
    epochs.NAME: (epochs.epochs_that_went_back, ("wire",)),
    shared_identity.NAME: (shared_identity.shared_identities, ()),
    metadata_divergence.NAME: (
        metadata_divergence.metadata_divergences,
        ("wire", "metadata_offsets", "metadata_writes"),
    ),
    fencing.EARLY: (fencing.fenced_too_early, ()),
    fencing.LATE: (fencing.fenced_too_late, ()),
    illegal_isr.EMPTY: (illegal_isr.empty_isrs, ()),
    illegal_isr.NOT_IN_REPLICAS: (illegal_isr.strange_isrs, ()),
    illegal_isr.ELR_OVERLAPS: (illegal_isr.elr_overlaps, ()),
    illegal_transition.NAME: (illegal_transition.illegal_transitions, ()),
    stuck_isr.NAME: (stuck_isr.stuck_isrs, ("faults",)),
    stuck_replica.NAME: (stuck_replica.stuck_replicas, ("faults", "replicas")),
    epoch_check_bypassed.NAME: (epoch_check_bypassed.bypassed_epoch_checks, ()),
    stale_controller.NAME: (stale_controller.stale_controllers, ()),
    lost_metadata_write.NAME: (lost_metadata_write.lost_metadata_writes, ()),
}
"""By name: the kernel, and tables that it takes besides those that its entry needs."""

CONTROL_PLANE: Final = cluster_group(
    "the control plane",
    [
        *GENERAL_CHECKS,
        *(
            ClusterCheck(
                entry=entry,
                kernel=_KERNELS[entry.name][0],
                tables=(*entry.needs, *_KERNELS[entry.name][1]),
            )
            for entry in CONTROL_PLANE_ENTRIES
        ),
        *TOLD_CHECKS,
        *LIFE_CYCLE_CHECKS,
    ],
)
