"""A container for each node, on a network of the run.

A container sees the node's own directory, and what the node reads (its release, its Java) at the
very same paths as here, so that a command line, a class-data archive and a file mean the same in
both. Each has its address for as long as the run lasts, also when it is started again. The network
is internal; the machine reaches the nodes over its bridge, and so do clients.

Each thing is in the ledger before it is made: containers belong to the daemon and not to the
warden, and would outlive both.
"""

import os
import re
import socket
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from fencepost.clusters.hosts.docker.container import ContainerProcess
from fencepost.clusters.hosts.docker.daemon import ContainerSpec, Daemon, NetworkSpec, connected
from fencepost.clusters.hosts.docker.image import image_named
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.local_host import LocalPlace
from fencepost.clusters.hosts.place import LOG, NodeProcess
from fencepost.clusters.hosts.process import HARNESS_VARIABLE, RUN_VARIABLE, harness_mark
from fencepost.clusters.hosts.subnet import Subnet, claim_subnet
from fencepost.clusters.hosts.undo import RemoveContainer, RemoveNetwork
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.provision.cache import Progress
from fencepost.history.failure import HarnessError

_INTERFACE: Final = "eth0"
"""Docker's name for it in every container."""


class ContainerPlace(LocalPlace):
    """`clusters.hosts.place.Place` with a network of its own, as long as its process lives."""

    def __init__(
        self, directory: Path, *, process: NodeProcess, address: str, machine_address: str
    ) -> None:
        super().__init__(directory, process=process, address=address)
        self._machine_address = machine_address

    @property
    def interface(self) -> str:
        """The name, inside of the container, of what its packets go through."""
        return _INTERFACE

    @property
    def machine_address(self) -> str:
        """The address of this machine on the run's network."""
        return self._machine_address

    def namespace(self) -> Path | None:
        """The file by which its network is entered: each start makes a new one."""
        if self.process.pid is None or self.process.state() is NodeState.DOWN:
            return None
        return Path(f"/proc/{self.process.pid}/ns/net")


class DockerHost:
    """`clusters.hosts.place.Host` of containers. Entered before it is asked for anything.

    `readable`: what every node reads besides its own directory. `image`: None for the base image.
    """

    _daemon: Daemon
    _image: str
    _subnet: Subnet

    def __init__(
        self,
        *,
        run_id: str,
        ledger: Ledger,
        readable: Iterable[Path],
        image: str | None,
        progress: Progress,
    ) -> None:
        self._name = f"fencepost-{re.sub(r'[^A-Za-z0-9_.-]', '-', run_id)}-{os.getpid()}"
        self._marks = {RUN_VARIABLE: run_id, HARNESS_VARIABLE: harness_mark()}
        self._ledger = ledger
        self._readable = tuple(readable)
        self._wanted_image = image
        self._progress = progress
        self._place_count = 0

    @property
    def ledger(self) -> Ledger:
        """The ledger in which the undo of changes to the machine is written."""
        return self._ledger

    def place(self, node: NodeName, *, directory: Path) -> ContainerPlace:
        """A container that is not made before its first start, with an address from now on."""
        self._place_count += 1
        address = self._subnet.node(self._place_count)
        directory.mkdir(parents=True, exist_ok=True)
        spec = ContainerSpec(
            name=f"{self._name}-{node}",
            image=self._image,
            argv=(),
            env=self._marks,
            directory=directory,
            readable=self._readable,
            user=f"{os.getuid()}:{os.getgid()}",
            # A node asks for the address of its own name, which its hosts file has as this one.
            hostname=socket.gethostname(),
            network=self._name,
            address=address,
            memory_bytes=0,
            labels={"fencepost.run": self._marks[RUN_VARIABLE]},
        )
        self._ledger.note(RemoveContainer(name=spec.name))
        log = directory / LOG
        process = ContainerProcess(spec, node=node, daemon=self._daemon, log=log)
        return ContainerPlace(
            directory,
            process=process,
            address=address,
            machine_address=self._subnet.gateway,
        )

    def link_address(self, source: int, target: int) -> str:
        """An address of the run's subnet that is this machine's own."""
        return self._subnet.link(source, target)

    def __enter__(self) -> Self:
        self._daemon = connected()
        self._image = image_named(self._wanted_image, daemon=self._daemon, progress=self._progress)
        self._subnet = claim_subnet(self._ledger)
        self._ledger.note(RemoveNetwork(name=self._name))
        self._daemon.create_network(
            NetworkSpec(
                name=self._name,
                bridge=_bridge(self._subnet),
                subnet=str(self._subnet.network),
                gateway=self._subnet.gateway,
                labels={"fencepost.run": self._marks[RUN_VARIABLE]},
            )
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave the undo of what was made to the ledger, the last first."""
        self._daemon.__exit__(kind, error, traceback)


def why_no_containers() -> str | None:
    """Return why this machine cannot have nodes in containers, with the way out; None if it can."""
    if os.geteuid() != 0:
        return (
            "containers need root: the network of a run is guarded by routes of this machine's; "
            "run it with sudo, or try --host local"
        )
    try:
        connected().__exit__(None, None, None)
    except HarnessError as error:
        return str(error)
    return None


def _bridge(subnet: Subnet) -> str:
    """Return a name of at most 15 characters, unique: no two live runs have the same subnet."""
    return f"fpd-{os.getpid()}-{subnet.network[0].packed[2]}"
