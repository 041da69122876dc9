"""The checks of the nodes' own processes: entries, kernels and the tables that each is given."""

from typing import Final

from checkers.cluster_checks import ClusterCheck
from checkers.grounds.node_entries import FATAL_FAULT, HEALTHY_PROCESSES, UNREADABLE_DISK
from checkers.grounds.node_logs import fatal_faults, sick_processes, unreadable_disks

__all__ = ["GENERAL_CHECKS"]

GENERAL_CHECKS: Final = (
    ClusterCheck(entry=HEALTHY_PROCESSES, kernel=sick_processes, tables=HEALTHY_PROCESSES.needs),
    ClusterCheck(entry=FATAL_FAULT, kernel=fatal_faults, tables=(*FATAL_FAULT.needs, "faults")),
    ClusterCheck(
        entry=UNREADABLE_DISK,
        kernel=unreadable_disks,
        tables=(*UNREADABLE_DISK.needs, "faults"),
    ),
)
