"""The settings with which a scenario's nodes start so that its faults can be done to them."""

from dataclasses import replace

from clusters.hosts.cgroups.hierarchy import parents
from clusters.hosts.clocks.library import clock_library
from harness.scenario.options import RunOptions
from harness.scenario.scenario import Scenario
from history.failure import HarnessError, UsageError
from nemesis.verbs.takes import Takes

__all__ = ["with_hardships"]


def with_hardships(scenario: Scenario, options: RunOptions) -> Scenario:
    """Return the scenario, its nodes with their own clocks and control groups where it needs them.

    Raise UsageError if this machine can have none. Nodes in virtual time have neither.
    """
    if options.cluster.in_virtual_time:
        return scenario
    cluster = replace(
        scenario.cluster,
        own_clocks=scenario.cluster.own_clocks or Takes.CLOCKS in scenario.takes,
        own_groups=scenario.cluster.own_groups or Takes.GROUPS in scenario.takes,
    )
    try:
        if cluster.own_clocks:
            clock_library()
        if cluster.own_groups:
            parents()
    except HarnessError as error:
        raise UsageError(f"{scenario.name} cannot be run on this machine: {error}") from error
    return replace(scenario, cluster=cluster)
