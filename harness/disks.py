"""Whether a run's nodes get disks of their own, and whether they can."""

from dataclasses import replace

from clusters.hosts.disks.image import missing
from clusters.port import Disks
from harness.options import HostKind, RunOptions
from harness.scenario import Scenario
from history.failure import UsageError

__all__ = ["with_disks"]


def with_disks(scenario: Scenario, options: RunOptions) -> Scenario:
    """The scenario, its nodes on disks of their own if something is done to these.

    UsageError if this machine can have none. Nodes in virtual time have disks in any case.
    """
    if options.cluster.in_virtual_time:
        return scenario
    if not scenario.needs_disks and scenario.cluster.disks is Disks.SHARED:
        return scenario
    why = missing()
    if options.host is HostKind.SSH:
        why = "they are for nodes on this machine, not for --host ssh"
    if why is not None:
        raise UsageError(f"{scenario.name} needs a disk of its own for each node: {why}")
    return replace(scenario, cluster=replace(scenario.cluster, disks=Disks.IMAGE))
