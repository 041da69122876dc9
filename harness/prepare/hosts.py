"""The host that a run's nodes are placed on, as the options ask for it."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import assert_never

from fencepost.clusters.hosts.docker.daemon import connected
from fencepost.clusters.hosts.docker.host import DockerHost
from fencepost.clusters.hosts.docker.image import release_in
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.local_host import LocalHost
from fencepost.clusters.hosts.namespaces import NamespaceHost
from fencepost.clusters.hosts.place import Host
from fencepost.clusters.hosts.ssh.host import SshHost, Uploads
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeName
from fencepost.clusters.provision.cache import Progress
from fencepost.clusters.system import Prepared
from fencepost.harness.prepare.inventory_file import load_inventory
from fencepost.harness.prepare.releases import IN_IMAGE
from fencepost.harness.scenario.options import HostKind, RunOptions
from fencepost.harness.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """The demands of a run on its host."""

    run_id: str
    nodes: tuple[NodeName, ...]
    directory: Path
    """The directory that holds one directory for each node."""
    prepared: Prepared
    """The material that nodes are made of."""
    progress: Progress


def host_of(options: RunOptions, needs: Needs, *, warden: Warden, ledger: Ledger) -> Host:
    """Return the host, with nothing of it made yet: that begins when it is entered."""
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
                luggage=Uploads(
                    java_home=needs.prepared.java.home,
                    carried=needs.prepared.carried,
                    for_this_processor=options.cluster.of_our_own,
                ),
                run_id=needs.run_id,
                warden=warden,
                directory=needs.directory,
                progress=needs.progress,
            )
        case _:
            assert_never(options.host)


def with_release_of_image(scenario: Scenario, options: RunOptions, progress: Progress) -> Scenario:
    """Return the scenario, on a copy of the release if it names one in the containers' image."""
    name = scenario.cluster.release
    if not name.startswith(IN_IMAGE):
        return scenario
    assert options.image is not None, "refused before"
    with connected() as daemon:
        home = name.removeprefix(IN_IMAGE)
        copy = release_in(options.image, home, daemon=daemon, progress=progress)
    return replace(scenario, cluster=replace(scenario.cluster, release=f"path:{copy}"))
