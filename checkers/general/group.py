"""The checks of the nodes' own processes, as a group of the checker."""

from typing import Final

from checkers.cluster_checks import ClusterCheck, cluster_group
from checkers.general.entries import FATAL_FAULT, HEALTHY_PROCESSES
from checkers.general.node_logs import fatal_faults, sick_processes

__all__ = ["GENERAL"]

GENERAL: Final = cluster_group(
    "the nodes' processes",
    [
        ClusterCheck(
            entry=HEALTHY_PROCESSES, kernel=sick_processes, tables=HEALTHY_PROCESSES.needs
        ),
        ClusterCheck(entry=FATAL_FAULT, kernel=fatal_faults, tables=(*FATAL_FAULT.needs, "faults")),
    ],
)
