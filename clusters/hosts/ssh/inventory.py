"""The machines of an inventory, how to log in to them, and their nodes: plain values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from fencepost.clusters.port import NodeName
from fencepost.history.failure import SpecError, UsageError

SSH_PORT: Final = 22
_PORT_MAX: Final = 65535
_MACHINE_KEYS: Final = (
    "host",
    "port",
    "user",
    "identity",
    "address",
    "directory",
    "java",
    "python",
    "nodes",
)
_KEYS: Final = ("harness_address", "known_hosts", "machines")


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """A machine and how to log in to it."""

    host: str
    """A name or an address, as an SSH client takes it."""
    port: int = SSH_PORT
    user: str | None = None
    """None: the user who runs the harness."""
    identity: Path | None = None
    """A private key; None: the agent's keys, then the user's own."""
    address: str | None = None
    """The address at which the other machines find it; None: what `host` means here."""
    directory: str = ".fencepost"
    """Ours over there; relative to the home directory of the user."""
    java: str | None = None
    """A JAVA_HOME over there; None: the harness's own Java is copied."""
    python: str = "python3"
    """3.9 or newer."""
    nodes: tuple[NodeName, ...] = ()
    """The nodes that are to run here; those that no machine names are dealt in turn."""

    def __str__(self) -> str:
        """Return the name that the user would give it."""
        return self.host if self.port == SSH_PORT else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """All machines of a run."""

    machines: tuple[Machine, ...]
    harness_address: str | None = None
    """The address at which the machines find this one; None: the source of the first connection."""
    known_hosts: Path | None = None
    """Keys that are trusted; None: the user's own file."""


def parse_inventory(data: Mapping[str, Any]) -> Inventory:
    """The inventory that a mapping states. SpecError with the path of what cannot be."""
    _refuse_unknown(data, _KEYS, ())
    machines = data.get("machines")
    if not isinstance(machines, list) or not machines:
        raise SpecError(("machines",), "expected a list of machines, e.g. '- host: 10.0.0.11'")
    parsed = tuple(_machine(entry, ("machines", n)) for n, entry in enumerate(machines))
    _refuse_shared(parsed)
    return Inventory(
        machines=parsed,
        harness_address=_text(data, "harness_address", ()),
        known_hosts=_path(data, "known_hosts", ()),
    )


def assign(nodes: Sequence[NodeName], machines: Sequence[Machine]) -> dict[NodeName, Machine]:
    """Return which node runs where: as named, the others dealt in turn over machines naming none.

    UsageError if a machine names a node that the cluster does not have, or none is left to deal to.
    """
    named = {node: machine for machine in machines for node in machine.nodes}
    if unknown := [node for node in named if node not in nodes]:
        raise UsageError(
            f"the inventory places {', '.join(unknown)}; the cluster has {', '.join(nodes)}"
        )
    open_to_all = [machine for machine in machines if not machine.nodes]
    left = [node for node in nodes if node not in named]
    if left and not open_to_all:
        raise UsageError(
            f"the inventory has no machine for {', '.join(left)}: name them under 'nodes', or add "
            "a machine that names none"
        )
    dealt = {node: open_to_all[n % len(open_to_all)] for n, node in enumerate(left)}
    return {node: (named | dealt)[node] for node in nodes}


def _machine(entry: object, path: tuple[str | int, ...]) -> Machine:
    if not isinstance(entry, dict):
        raise SpecError(path, "expected a machine, e.g. '- host: 10.0.0.11'")
    _refuse_unknown(entry, _MACHINE_KEYS, path)
    host = _text(entry, "host", path)
    if host is None:
        raise SpecError(path, "a machine needs 'host': a name or an address")
    return Machine(
        host=host,
        port=_port(entry, path),
        user=_text(entry, "user", path),
        identity=_path(entry, "identity", path),
        address=_text(entry, "address", path),
        # The session begins in the home directory, and no shell is to read it.
        directory=(_text(entry, "directory", path) or ".fencepost").removeprefix("~/"),
        java=_text(entry, "java", path),
        python=_text(entry, "python", path) or "python3",
        nodes=_nodes(entry, path),
    )


def _nodes(entry: Mapping[str, Any], path: tuple[str | int, ...]) -> tuple[NodeName, ...]:
    value = entry.get("nodes", [])
    if not isinstance(value, list) or not all(isinstance(node, str) for node in value):
        raise SpecError((*path, "nodes"), "expected a list of nodes, e.g. [broker-1]")
    return tuple(map(NodeName, value))


def _port(entry: Mapping[str, Any], path: tuple[str | int, ...]) -> int:
    port = entry.get("port", SSH_PORT)
    if not isinstance(port, int) or not 0 < port <= _PORT_MAX:
        raise SpecError((*path, "port"), f"expected a port from 1 to {_PORT_MAX}, found {port!r}")
    return port


def _path(data: Mapping[str, Any], key: str, path: tuple[str | int, ...]) -> Path | None:
    text = _text(data, key, path)
    return None if text is None else Path(text).expanduser()


def _text(data: Mapping[str, Any], key: str, path: tuple[str | int, ...]) -> str | None:
    value = data.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise SpecError((*path, key), f"expected text, found {value!r}")
    return value


def _refuse_unknown(
    data: Mapping[str, Any], allowed: Sequence[str], path: tuple[str | int, ...]
) -> None:
    for key in data:
        if key not in allowed:
            raise SpecError((*path, key), f"unknown; allowed: {', '.join(allowed)}")


def _refuse_shared(machines: Sequence[Machine]) -> None:
    """Refuse two entries for one machine, or one node on two of them."""
    places: set[tuple[str, int]] = set()
    nodes: set[NodeName] = set()
    for number, machine in enumerate(machines):
        if (machine.host, machine.port) in places:
            raise SpecError(("machines", number, "host"), f"{machine} is listed twice")
        if twice := nodes.intersection(machine.nodes):
            raise SpecError(
                ("machines", number, "nodes"), f"{min(twice)} is placed on two machines"
            )
        places.add((machine.host, machine.port))
        nodes.update(machine.nodes)
