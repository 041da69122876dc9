"""A run before anything of it starts: its scenario as cluster and host will perform it.

All refusals come from here, without a host, a Java or a directory: a run carries out the plan that
`--dry-run` shows, so that the two cannot differ. A host has to be possible here. Disks of the nodes
are their own, or followed if they cannot be; and nodes start with their own clocks and control
groups where a fault needs these.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.cgroups.hierarchy import parents
from fencepost.clusters.hosts.clocks.library import clock_library
from fencepost.clusters.hosts.disks.image import missing
from fencepost.clusters.hosts.place import LOOPBACK
from fencepost.clusters.hosts.ports import ReservedPorts
from fencepost.clusters.hosts.power.library import follow_library
from fencepost.clusters.kafka_port import of_kafka
from fencepost.clusters.port import Disks
from fencepost.clusters.systems import KAFKA, system_of
from fencepost.harness.prepare.abilities import There, refuse_missing_abilities
from fencepost.harness.prepare.inventory_file import load_inventory
from fencepost.harness.prepare.reference import (
    fitted_to_reference,
    level_of,
    refuse_unsimulated_clients,
    refuse_what_is_kafkas,
    release_like,
    rules_of,
    rules_without,
)
from fencepost.harness.prepare.releases import IN_IMAGE, refuse_missing_releases
from fencepost.harness.run.starts import why_not_again
from fencepost.harness.scenario.expectation import Expectation, expectation_for
from fencepost.harness.scenario.mix import seeded_mix
from fencepost.harness.scenario.options import HostKind, RunOptions
from fencepost.harness.scenario.requirement import NO_REQUIRE, is_shortened
from fencepost.harness.scenario.scenario import Scenario
from fencepost.history.failure import HarnessError, NotHereError, SpecError, UsageError
from fencepost.nemesis.targets import Scene
from fencepost.nemesis.verbs.prerequisite import Prerequisite
from fencepost.nemesis.verbs.registry import kinds_with_prerequisite
from fencepost.nemesis.verbs.step import Step

_FREE_BYTES_MIN: Final = 1 << 30
"""A smoke run writes about 200 MB (logs, segments, node data); below this it would not end well."""
_OF_DISKS: Final = frozenset({Prerequisite.DISKS, Prerequisite.DISK_IMAGES})
_TICK_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The plan of a run: its scenario, fitted, and its options."""

    scenario: Scenario
    """The scenario, fitted to its cluster and its host."""
    options: RunOptions

    @property
    def there(self) -> There:
        """The cluster and the host on which its faults are performed."""
        options = self.options
        carried = system_of(self.scenario.cluster).protocols
        return There(make=options.cluster, host=options.host, wired=options.wire, protocols=carried)

    @property
    def release(self) -> str:
        """The release whose expectations hold, as far as it is known before a build is examined."""
        spec = self.scenario.cluster
        return release_like(spec) if self.options.cluster.of_our_own else spec.release

    @property
    def level(self) -> int | None:
        """The level of its protocol that a cluster of our own starts with."""
        of_our_own = self.options.cluster.of_our_own
        return level_of(self.scenario.cluster) if of_our_own else None

    @property
    def why_not_again(self) -> str | None:
        """The reason why its nodes cannot be started once more after it; None if they can be."""
        make, host = self.options.cluster, self.options.host
        return why_not_again(self.scenario.cluster, make=make, host=host)

    @property
    def expectation(self) -> Expectation | None:
        """The expectation that its scenario has of it."""
        return expectation_for(self.scenario.expect, release=self.release, level=self.level)


def planned(scenario: Scenario, options: RunOptions, say: Callable[[str], None]) -> RunPlan:
    """Return the plan of a run.

    Raise UsageError or HarnessError, with its place, for an impossible one.
    """
    _refuse_full_disk(options.results)
    _refuse_make(scenario, options)
    _refuse_unplaceable(options)
    _refuse_taken_ports(scenario, options)
    # Before the cluster's class is imported, which says what can be done to it.
    plan = RunPlan(scenario=_fitted(scenario, options, say), options=options)
    _refuse_release(plan)
    _say_if_short(plan.scenario, say)
    refuse_missing_abilities(plan.scenario, plan.there)
    _refuse_settings(plan.scenario, options, say)
    scenario = _with_disks(plan.scenario, options, say)
    plan = replace(plan, scenario=_with_hardships(scenario, options))
    if options.keeps_running and (why := plan.why_not_again) is not None:
        raise UsageError(f"--keep-running: {plan.scenario.name}: {why}")
    return plan


def _refuse_release(plan: RunPlan) -> None:
    """Raise UsageError if the scenario says that it is no run of this release."""
    found, scenario = plan.expectation, plan.scenario
    if found is not None and found.refused:
        place = ("expect", scenario.expect.index(found))
        why = f"it cannot be run on {plan.release}: {found.refused}"
        raise scenario.document.error(SpecError(place, why))


def _say_if_short(scenario: Scenario, say: Callable[[str], None]) -> None:
    """Say what a run that is shorter than its scenario has to do all the same."""
    demands = scenario.require.demands
    if demands and is_shortened(scenario.document):
        listed = "; ".join(f"{key} {words}" for key, words in demands.items())
        say(
            f"shorter than the scenario, whose demands stay in force: {listed}. A run that does "
            f"not meet them is unknown; {NO_REQUIRE} waives them"
        )


def _refuse_make(scenario: Scenario, options: RunOptions) -> None:
    """Raise UsageError if the scenario's cluster cannot be made of such nodes."""
    system, make = system_of(scenario.cluster), options.cluster
    if make not in system.makes:
        raise UsageError(
            f"--cluster {make}: {scenario.name} runs on {system.name}, which can be: "
            f"{', '.join(system.by_name)}"
        )
    if scenario.trial is not None and not make.in_virtual_time:
        raise UsageError(f"{scenario.name} is a trial: pass --cluster simulated")
    if options.without_rules and not make.of_our_own:
        raise UsageError(
            "--without-rule is for reference nodes: pass --cluster reference or simulated"
        )


def _fitted(scenario: Scenario, options: RunOptions, say: Callable[[str], None]) -> Scenario:
    """Return the scenario as this kind of cluster performs it; raise UsageError if it cannot."""
    if options.cluster.in_virtual_time:
        _refuse_as_simulated(scenario, options)
    elif options.cluster.of_our_own:
        return fitted_to_reference(scenario, options, say)
    else:
        if options.cluster is KAFKA:
            from fencepost.clusters.kafka.configuration import refuse_impossible  # noqa: PLC0415

            refuse_impossible(of_kafka(scenario.cluster))
        refuse_missing_releases(scenario, options.cluster, image=options.image)
    return scenario


def _refuse_as_simulated(scenario: Scenario, options: RunOptions) -> None:
    rules_without(options.without_rules, rules_of(scenario.cluster))
    refuse_what_is_kafkas(scenario)
    if scenario.trial is not None:
        from fencepost.harness.trials.plan import plan_of  # noqa: PLC0415

        plan_of(scenario, options.seed)
    refuse_unsimulated_clients(scenario)


def _refuse_settings(scenario: Scenario, options: RunOptions, say: Callable[[str], None]) -> None:
    """Raise UsageError for settings that the release, as far as it is here, or clients lack."""
    from fencepost.harness.prepare import settings  # noqa: PLC0415  # it asks a JVM, where there is a reason

    settings.refuse_unknown_of_clients(scenario)
    release = scenario.cluster.release
    if options.cluster.of_our_own or release.startswith(IN_IMAGE):
        return
    if settings.has_settings(scenario) and options.cluster.is_here(release):
        settings.refuse_unknown_in_cache(scenario, options.cluster, say)


def _refuse_full_disk(results: Path) -> None:
    there = next(path for path in (results, *results.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "Permission denied" if there.is_dir() else "Not a directory"
        raise HarnessError(f"{results}: cannot write results there: {why}")
    free_bytes = shutil.disk_usage(there).free
    if free_bytes < _FREE_BYTES_MIN:
        raise HarnessError(
            f"{results}: {free_bytes / 2**20:,.0f} MiB free, a run needs "
            f"{_FREE_BYTES_MIN / 2**20:,.0f}; make room or pass --results DIR on another disk"
        )


def _refuse_unplaceable(options: RunOptions) -> None:
    """Raise UsageError if the run cannot be placed on this host."""
    if options.cluster.in_virtual_time and options.host is not HostKind.LOCAL:
        raise UsageError(
            f"--host {options.host}: the nodes of --cluster {options.cluster} are not processes"
        )
    if options.image is not None and options.host is not HostKind.DOCKER:
        raise UsageError(f"--image is for containers, and --host {options.host} has none")
    if options.inventory is not None and options.host is not HostKind.SSH:
        raise UsageError(f"--inventory is for --host ssh, and this is --host {options.host}")
    if (why := _why_not(options.host)) is not None:
        raise NotHereError(f"--host {options.host} is not possible here: {why}")
    if options.host is HostKind.SSH:
        if options.inventory is None:
            raise UsageError("--host ssh needs to know the machines: --inventory FILE")
        load_inventory(options.inventory)


def _refuse_taken_ports(scenario: Scenario, options: RunOptions) -> None:
    """Raise UsageError if a port that the nodes are to take is in use."""
    if options.port_base is None or options.cluster.in_virtual_time:
        return
    ports = ReservedPorts(LOOPBACK)
    ports.take(scenario.cluster.port_count(), base=options.port_base)
    ports.close()


def _with_disks(scenario: Scenario, options: RunOptions, say: Callable[[str], None]) -> Scenario:
    """Return the scenario, its nodes on disks of their own if a step acts on these.

    Where there can be none, and the only fault is a loss of power, what the nodes sync is followed.
    Raise UsageError if this machine can do neither. Nodes in virtual time always have disks.
    """
    if options.cluster.in_virtual_time:
        return scenario
    asked = scenario.cluster.disks
    if not _OF_DISKS & scenario.prerequisites and asked is Disks.SHARED:
        return scenario
    disks = asked if asked is not Disks.SHARED else _best(scenario, options)
    if disks is Disks.IMAGE and (why := _why_no_images(options)):
        raise NotHereError(f"{scenario.name} needs a disk of its own for each node: {why}")
    if disks is Disks.FOLLOWED:
        _refuse_unfollowable(scenario)
        if asked is Disks.SHARED:
            say(
                f"no disks of the nodes' own ({_why_no_images(options)}): a library that they "
                "preload notes what they sync, and what they did not is lost with their power"
            )
    return replace(scenario, cluster=replace(scenario.cluster, disks=disks))


def _with_hardships(scenario: Scenario, options: RunOptions) -> Scenario:
    """Return the scenario, its nodes with their own clocks and control groups where it needs them.

    Raise UsageError if this machine can have none. Nodes in virtual time have neither.
    """
    if options.cluster.in_virtual_time:
        return scenario
    cluster = replace(
        scenario.cluster,
        own_clocks=scenario.cluster.own_clocks or Prerequisite.CLOCKS in scenario.prerequisites,
        own_groups=scenario.cluster.own_groups or Prerequisite.GROUPS in scenario.prerequisites,
    )
    try:
        if cluster.own_clocks:
            clock_library()
        if cluster.own_groups:
            parents()
    except HarnessError as error:
        raise NotHereError(f"{scenario.name} cannot be run on this machine: {error}") from error
    return replace(scenario, cluster=cluster)


def _why_not(host: HostKind) -> str | None:
    # The modules that each needs are imported when it is asked for.
    match host:
        case HostKind.NETNS:
            from fencepost.clusters.hosts.namespaces import why_no_namespaces  # noqa: PLC0415

            return why_no_namespaces()
        case HostKind.DOCKER:
            from fencepost.clusters.hosts.docker.host import why_no_containers  # noqa: PLC0415

            return why_no_containers()
        case _:
            return None


def _best(scenario: Scenario, options: RunOptions) -> Disks:
    """Return the best kind of disks.

    A real file system decides what is lost, where there can be one.
    """
    if _why_no_images(options) is None or Prerequisite.DISK_IMAGES in scenario.prerequisites:
        return Disks.IMAGE
    return Disks.FOLLOWED


def _why_no_images(options: RunOptions) -> str | None:
    if options.host is HostKind.SSH:
        return "they are for nodes on this machine, not for --host ssh"
    return missing()


def _refuse_unfollowable(scenario: Scenario) -> None:
    if troubles := sorted(
        kinds_with_prerequisite(Prerequisite.DISK_IMAGES) & set(scenario.asked_faults)
    ):
        raise UsageError(f"{scenario.name}: {troubles[0]} needs disks: image, not followed")
    try:
        follow_library()
    except HarnessError as error:
        raise NotHereError(
            f"{scenario.name} cannot track which writes nodes sync: {error}"
        ) from error


def projected(scenario: Scenario, seed: int) -> Iterator[tuple[float, Step]]:
    """Yield the steps with the earliest times, in seconds, at which they are due."""
    if scenario.mix is None:
        return
    mix, scene = seeded_mix(scenario.mix, seed=seed, keys=scenario.keys), _scene(scenario)
    for tick in range(1, int(scenario.time_limit_s / _TICK_S)):
        now_s = tick * _TICK_S
        for step in mix.due(now_s, scene=scene, impaired=frozenset()):
            yield now_s, step


def _scene(scenario: Scenario) -> Scene:
    """Return the cluster when nothing has happened to it yet."""
    spec = scenario.cluster
    members = tuple(node for node in spec.nodes if node not in spec.spares)
    ids = {node: shown for node, shown in spec.view_ids.items() if node in members}
    leads = system_of(spec).led_by or spec.roles[0].name
    return Scene(
        nodes=members,
        broker_ids=ids,
        roles=spec.node_roles,
        view=system_of(spec).first_view(tuple(ids.values()), scenario.topics),
        active_controller=spec.node_roles.among(members, leads)[0],
    )
