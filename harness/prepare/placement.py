"""The nodes of a run on its host: what they need there is prepared, or the run refused.

A host has to be possible here. Disks of the nodes are their own, or followed if they cannot be; and
nodes start with their own clocks and control groups where a fault needs these.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from clusters.hosts.cgroups.hierarchy import parents
from clusters.hosts.clocks.library import clock_library
from clusters.hosts.disks.image import missing
from clusters.hosts.power.library import follow_library
from clusters.port import Disks
from harness.prepare.inventory_file import load_inventory
from harness.scenario.options import HostKind, RunOptions
from harness.scenario.scenario import Scenario
from history.failure import HarnessError, UsageError
from nemesis.verbs.registry import kinds_taking
from nemesis.verbs.takes import Takes

__all__ = ["refuse_unplaceable", "with_disks", "with_hardships"]

_OF_DISKS: Final = frozenset({Takes.DISKS, Takes.DISK_IMAGES})


def refuse_unplaceable(options: RunOptions) -> None:
    """Raise UsageError if the run cannot be placed on this host."""
    if options.cluster.in_virtual_time and options.host is not HostKind.LOCAL:
        raise UsageError(
            f"--host {options.host}: the nodes of --cluster {options.cluster} are no processes"
        )
    if options.image is not None and options.host is not HostKind.DOCKER:
        raise UsageError(f"--image is for containers, and --host {options.host} has none")
    if options.inventory is not None and options.host is not HostKind.SSH:
        raise UsageError(f"--inventory is for --host ssh, and this is --host {options.host}")
    if (why := _why_not(options.host)) is not None:
        raise UsageError(f"--host {options.host} is not possible here: {why}")
    if options.host is HostKind.SSH:
        if options.inventory is None:
            raise UsageError("--host ssh needs to know the machines: --inventory FILE")
        load_inventory(options.inventory)


def with_disks(scenario: Scenario, options: RunOptions, say: Callable[[str], None]) -> Scenario:
    """Return the scenario, its nodes on disks of their own if a step acts on these.

    Where there can be none, and the only fault is a loss of power, what the nodes sync is followed.
    Raise UsageError if this machine can do neither. Nodes in virtual time always have disks.
    """
    if options.cluster.in_virtual_time:
        return scenario
    asked = scenario.cluster.disks
    if not _OF_DISKS & scenario.takes and asked is Disks.SHARED:
        return scenario
    disks = asked if asked is not Disks.SHARED else _best(scenario, options)
    if disks is Disks.IMAGE and (why := _why_no_images(options)):
        raise UsageError(f"{scenario.name} needs a disk of its own for each node: {why}")
    if disks is Disks.FOLLOWED:
        _refuse_unfollowable(scenario)
        if asked is Disks.SHARED:
            say(
                f"no disks of the nodes' own ({_why_no_images(options)}): a library that they "
                "preload notes what they sync, and what they did not is lost with their power"
            )
    return replace(scenario, cluster=replace(scenario.cluster, disks=disks))


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


def _why_not(host: HostKind) -> str | None:
    # The modules that each needs are imported when it is asked for.
    match host:
        case HostKind.NETNS:
            from clusters.hosts.namespaces import why_no_namespaces  # noqa: PLC0415

            return why_no_namespaces()
        case HostKind.DOCKER:
            from clusters.hosts.docker.host import why_no_containers  # noqa: PLC0415

            return why_no_containers()
        case _:
            return None


def _best(scenario: Scenario, options: RunOptions) -> Disks:
    """Return the best kind of disks.

    A real file system decides what is lost, where there can be one.
    """
    if _why_no_images(options) is None or Takes.DISK_IMAGES in scenario.takes:
        return Disks.IMAGE
    return Disks.FOLLOWED


def _why_no_images(options: RunOptions) -> str | None:
    if options.host is HostKind.SSH:
        return "they are for nodes on this machine, not for --host ssh"
    return missing()


def _refuse_unfollowable(scenario: Scenario) -> None:
    if troubles := sorted(kinds_taking(Takes.DISK_IMAGES) & set(scenario.asked_faults)):
        raise UsageError(f"{scenario.name}: {troubles[0]} needs disks: image, not followed")
    try:
        follow_library()
    except HarnessError as error:
        raise UsageError(f"{scenario.name} cannot follow what nodes sync: {error}") from error
