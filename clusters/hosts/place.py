"""The places where nodes run: a host gives each node its place, and a place is all a node needs.

A place has an address of its own or shares this machine's, a directory as the node itself sees it,
and a process that is started there again and again. A cluster reaches a node's files and process
through its place alone, so that the same cluster runs on this machine, in namespaces, in containers
or elsewhere.

Names of files are relative to the place's directory, with slashes: "disk/data". `<node>/disk` may
be a file system of its own, so a node's data and what replaces it are to be on it together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self, runtime_checkable

from fencepost.clusters.abilities import NodeUsage, Route, direct
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.port import NodeName, NodeState
from fencepost.history.clock import Clock

LOOPBACK: Final = "127.0.0.1"
DATA: Final = "disk/data"
"""A node's data directory, by its name in the place."""
KEPT: Final = "kept"
"""The directory of what is kept of a node's metadata log, cut off or lost: it outlives the data."""
LOG: Final = "server.log"
"""The file that takes the process's stdout and stderr; every start appends to it."""


class NodeProcess(Protocol):
    """A process that is started, broken and started again. Not thread-safe.

    Each call returns once its effect was seen, or raises HarnessError.
    """

    @property
    def pid(self) -> int | None:
        """The pid of its latest start, as its host counts; None if it was never started."""

    @property
    def exit_code(self) -> int | None:
        """The exit code of its latest start (negative: the signal); None while it lives."""

    def state(self) -> NodeState:
        """Return the current state of the process, as the host reports it."""

    def usage(self) -> NodeUsage | None:
        """Return what it uses now; None if it is down."""

    def start(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Start it inside its directory; it must be down. `env` is added to the usual one."""

    def stop(self, *, timeout_s: float) -> bool:
        """Send SIGTERM, wait, kill after `timeout_s`. True if it ended on SIGTERM or was down."""

    def terminate(self) -> None:
        """Send SIGTERM, without waiting."""

    def kill(self) -> None:
        """Send SIGKILL, also if it is paused; return when it is gone."""

    def pause(self) -> None:
        """Stop every thread of it."""

    def resume(self) -> None:
        """Let it go on."""


class Place(Protocol):
    """The place where one node runs. Every method raises HarnessError if it could not be done."""

    @property
    def address(self) -> str:
        """The IPv4 address on which the node listens, and at which all others find it."""

    @property
    def directory(self) -> Path:
        """The node's directory as the node itself sees it, absolute."""

    @property
    def process(self) -> NodeProcess:
        """The node's process; its output goes to `LOG`."""

    def write(self, name: str, text: str) -> None:
        """Write a small file, making the directories that it needs."""

    def install(self, name: str, source: Path) -> None:
        """Put a copy of this machine's directory `source` in the place of `name`."""

    def remove(self, name: str) -> None:
        """Delete a directory, if it is there, for certain."""

    def copy(self, name: str, to: str) -> None:
        """Replace `to` by a copy of the directory `name`, which no process may write to."""

    def fetch(self, name: str) -> Path:
        """A path of this machine that holds what `name` holds now, a file or a directory.

        The very same path where the place shares this machine's files. Of what is not there: a path
        that does not exist.
        """

    def fetch_all(self, pattern: str) -> tuple[Path, ...]:
        """Return paths of this machine with the files whose names match ("*.log"), by name."""

    def size_bytes(self, name: str) -> int:
        """Return the size of a file in bytes; 0 if it does not exist."""

    def bring(self, source: Path) -> Path:
        """Put a copy of this machine's file into the directory; its path as the node sees it."""

    def perform(self, script: Path, *arguments: str) -> str:
        """Run a script of ours, which needs Python alone, where the files are; what it prints."""


@runtime_checkable
class OwnNetwork(Protocol):
    """A place on this machine whose node has a network namespace of its own."""

    @property
    def interface(self) -> str:
        """The name, inside, of what the node's packets go through."""

    @property
    def machine_address(self) -> str:
        """An address of this machine that the node reaches."""

    def namespace(self) -> Path | None:
        """The file by which the namespace is entered now; None while no namespace exists."""


class Host(Protocol):
    """The host that the places of a run share: a context manager, left when all nodes are down."""

    @property
    def ledger(self) -> Ledger | None:
        """The ledger for the undo of what is done to the machine; None: nothing may be done."""

    def place(self, node: NodeName, *, directory: Path) -> Place:
        """Make the place of a node; `directory`: the node's own in the run directory, absolute."""

    def link_address(self, source: int, target: int) -> str:
        """Return where a proxy on this machine can listen for a link so that its source reaches it.

        Parties are numbered: 0 the clients, from 1 on the nodes. No two links share an address.
        """

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """The site of a cluster of processes: the host, and what the run gives beside it."""

    host: Host
    directory: Path
    """The directory of the nodes' own ones."""
    clock: Clock
    port_base: int | None = None
    """The first of the ports that nodes use, one after the other; None: any that are free."""
    route: Route = direct
    """The address at which each node, and the clients, find each node."""


@runtime_checkable
class LeadsLinks(Protocol):
    """A host of other machines, from which the addresses of links have to be made to lead here."""

    def lead(self, links: Sequence[tuple[NodeName, str, int]]) -> None:
        """Lead each (source, address, port) from its source's machine to this one."""
