"""The choice of a run's disks: the nodes' own, followed ones, or a refusal if neither can be."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from clusters.hosts.disks.image import missing
from clusters.hosts.power.library import follow_library
from clusters.port import Disks
from harness.scenario.options import HostKind, RunOptions
from harness.scenario.scenario import Scenario
from history.failure import HarnessError, UsageError
from nemesis.verbs.registry import kinds_taking
from nemesis.verbs.takes import Takes

__all__ = ["with_disks"]

_OF_DISKS: Final = frozenset({Takes.DISKS, Takes.DISK_IMAGES})


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
