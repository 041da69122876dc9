"""The host that a run's nodes are placed on, as the options ask for it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, assert_never

from clusters.hosts.docker.daemon import connected
from clusters.hosts.docker.host import DockerHost, why_no_containers
from clusters.hosts.docker.jars import release_in
from clusters.hosts.ledger import Ledger
from clusters.hosts.local_host import LocalHost
from clusters.hosts.namespaces import NamespaceHost, why_no_namespaces
from clusters.hosts.place import Host
from clusters.hosts.ssh.host import Luggage, SshHost
from clusters.hosts.warden import Warden
from clusters.port import NodeName
from clusters.provision.cache import Progress
from clusters.system import Prepared
from harness.prepare.inventory_file import load_inventory
from harness.scenario.options import HostKind, RunOptions
from harness.scenario.scenario import Scenario
from history.failure import UsageError

__all__ = ["Needs", "host_of", "refuse_unplaceable", "with_release_of_image"]

_IN_IMAGE: Final = "image:"
_SHARE_NO_FILES = frozenset({HostKind.DOCKER, HostKind.SSH})
"""Nodes of our own need this Python and all its packages, which are not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What a run wants of its host."""

    run_id: str
    nodes: tuple[NodeName, ...]
    directory: Path
    """In which each node has one."""
    prepared: Prepared
    """What nodes are made of."""
    progress: Progress


def host_of(options: RunOptions, needs: Needs, *, warden: Warden, ledger: Ledger) -> Host:
    """The host, with nothing of it made yet: that begins when it is entered."""
    match options.host:
        case HostKind.LOCAL:
            return LocalHost(warden, ledger=ledger)
        case HostKind.NETNS:
            return NamespaceHost(warden, ledger=ledger)
        case HostKind.DOCKER:
            return DockerHost(
                run_id=needs.run_id,
                ledger=ledger,
                readable=needs.prepared.files_read,
                image=options.image,
                progress=needs.progress,
            )
        case HostKind.SSH:
            assert options.inventory is not None, "refused before"
            return SshHost(
                load_inventory(options.inventory),
                nodes=needs.nodes,
                luggage=Luggage(java_home=needs.prepared.java.home, carried=needs.prepared.carried),
                run_id=needs.run_id,
                warden=warden,
                directory=needs.directory,
                progress=needs.progress,
            )
        case _:
            assert_never(options.host)


def refuse_unplaceable(options: RunOptions) -> None:
    """UsageError if what is to run cannot be placed on this host."""
    if options.cluster.in_virtual_time and options.host is not HostKind.LOCAL:
        raise UsageError(
            f"--host {options.host}: the nodes of --cluster {options.cluster} are no processes"
        )
    if options.host in _SHARE_NO_FILES and options.cluster.of_our_own:
        raise UsageError(f"--host {options.host} runs no nodes of our own: pass --host local")
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


def _why_not(host: HostKind) -> str | None:
    match host:
        case HostKind.NETNS:
            return why_no_namespaces()
        case HostKind.DOCKER:
            return why_no_containers()
        case _:
            return None


def with_release_of_image(scenario: Scenario, options: RunOptions, progress: Progress) -> Scenario:
    """The scenario, on a copy of the release if it names one inside of the containers' image."""
    name = scenario.cluster.release
    if not name.startswith(_IN_IMAGE):
        return scenario
    if options.image is None:
        raise UsageError(f"{name} is a place in an image: pass --host docker --image NAME as well")
    with connected() as daemon:
        home = name.removeprefix(_IN_IMAGE)
        copy = release_in(options.image, home, daemon=daemon, progress=progress)
    return replace(scenario, cluster=replace(scenario.cluster, release=f"path:{copy}"))
