"""Nodes in network namespaces of this machine: each has an address and an interface of its own.

A run has one more namespace, with the bridge that all are plugged into, so that no firewall of the
machine stands between nodes. The machine itself is plugged in, too: the harness, clients and the
proxy reach every node, and every node the addresses of its links, on which the proxy listens
(`subnet.py`). There is no way out: no node has a default route, nor the machine one for them.

Files, users and processes are the machine's; a node's pid is its pid here, and it dies with the
harness as any process under the warden does. Names begin with `fp` and a part of the subnet's
address: no two live runs have the same.
"""

import os
from pathlib import Path
from typing import Final, Self

from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.local import LocalProcess
from fencepost.clusters.hosts.local_host import LocalPlace
from fencepost.clusters.hosts.place import LOG
from fencepost.clusters.hosts.subnet import Subnet, claim_subnet
from fencepost.clusters.hosts.tools import tool, tool_missing
from fencepost.clusters.hosts.undo import RemoveInterface, RemoveNamespace
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeName
from fencepost.history.failure import HarnessError

_TRIAL: Final = (
    "ip link add fp-bridge type bridge && ip link add fp-a type veth peer name fp-b "
    "&& ip link set fp-a master fp-bridge"
)
# Above the range from which this machine takes ports for nodes: a connection that a node opens
# never takes the port of its own listener.
_OUTGOING_PORTS: Final = "61001 65535"
_INTERFACE: Final = "eth0"


class NamespacePlace(LocalPlace):
    """A directory of this machine, and a process in a namespace of its own."""

    def __init__(
        self,
        directory: Path,
        *,
        process: LocalProcess,
        address: str,
        name: str,
        machine_address: str,
    ) -> None:
        super().__init__(directory, process=process, address=address)
        self._name = name
        self._machine_address = machine_address

    @property
    def interface(self) -> str:
        """The name, inside of the namespace, of what its packets go through."""
        return _INTERFACE

    @property
    def machine_address(self) -> str:
        """The address of this machine on the run's subnet."""
        return self._machine_address

    def namespace(self) -> Path:
        """The file by which its network namespace is entered."""
        return _path_of(self._name)


class NamespaceHost:
    """Network namespaces of this machine: `clusters.hosts.place.Host`."""

    def __init__(self, warden: Warden, *, ledger: Ledger) -> None:
        self._warden = warden
        self._ledger = ledger
        self._subnet: Subnet | None = None
        self._count = 0

    @property
    def ledger(self) -> Ledger:
        """The ledger in which the undo of changes to the machine is written."""
        return self._ledger

    def __enter__(self) -> Self:
        """Take a subnet, and make the bridge. HarnessError if this machine cannot."""
        if (why := why_no_namespaces()) is not None:
            raise HarnessError(f"--host netns: {why}")
        self._subnet = claim_subnet(self._ledger)
        self._make_bridge(self._subnet)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the rest to the ledger to undo, once no process is in a namespace any more."""

    def place(self, node: NodeName, *, directory: Path) -> NamespacePlace:
        """Make a namespace for the node, plugged into the bridge."""
        assert self._subnet is not None, "the host was not entered"
        self._count += 1
        name = f"{self._prefix}-{node}"
        address = self._subnet.node(self._count)
        self._make_namespace(name)
        self._plug_in(name, address, port=f"{self._prefix}-{self._count}")
        directory.mkdir(parents=True, exist_ok=True)
        process = LocalProcess(
            node,
            warden=self._warden,
            directory=directory,
            log=directory / LOG,
            prefix=("nsenter", f"--net={_path_of(name)}", "--"),
        )
        return NamespacePlace(
            directory,
            process=process,
            address=address,
            name=name,
            machine_address=self._subnet.gateway,
        )

    def link_address(self, source: int, target: int) -> str:
        """An address of the half of the subnet that is the machine's own."""
        assert self._subnet is not None, "the host was not entered"
        return self._subnet.link(source, target)

    @property
    def _prefix(self) -> str:
        assert self._subnet is not None, "the host was not entered"
        return f"fp{self._subnet.network[0].packed[1:3].hex()}"

    @property
    def _switch(self) -> str:
        return f"{self._prefix}-switch"

    def _make_bridge(self, subnet: Subnet) -> None:
        self._make_namespace(self._switch)
        tool("ip", "-n", self._switch, "link", "add", "bridge", "type", "bridge")
        tool("ip", "-n", self._switch, "link", "set", "bridge", "up")
        own = self._prefix
        self._ledger.note(RemoveInterface(name=own))
        _pair(own, into=None, port=own, switch=self._switch)
        tool("ip", "address", "add", f"{subnet.gateway}/{subnet.network.prefixlen}", "dev", own)
        tool("ip", "link", "set", own, "up")

    def _make_namespace(self, name: str) -> None:
        self._ledger.note(RemoveNamespace(name=name))
        tool("ip", "netns", "add", name)
        tool("ip", "-n", name, "link", "set", "lo", "up")

    def _plug_in(self, name: str, address: str, *, port: str) -> None:
        assert self._subnet is not None, "the host was not entered"
        _pair(_INTERFACE, into=name, port=port, switch=self._switch)
        own = f"{address}/{self._subnet.network.prefixlen}"
        tool("ip", "-n", name, "address", "add", own, "dev", _INTERFACE)
        tool("ip", "-n", name, "link", "set", _INTERFACE, "up")
        range_path = "/proc/sys/net/ipv4/ip_local_port_range"
        tool("ip", "netns", "exec", name, "tee", range_path, text=_OUTGOING_PORTS)


def why_no_namespaces() -> str | None:
    """Return why this machine cannot have them, with the way out; None if it can.

    Tried in a namespace that is gone when the trial is over.
    """
    if (missing := tool_missing("ip", "nsenter", "unshare")) is not None:
        return f"there is no {missing} (install iproute2 and util-linux)"
    if os.geteuid() != 0:
        return "network namespaces need root (run it with sudo)"
    try:
        tool("unshare", "--net", "sh", "-c", _TRIAL)
    except HarnessError as error:
        return f"the kernel has no namespaces, bridges or veth pairs here: {error}"
    return None


def _path_of(name: str) -> Path:
    return Path("/run/netns") / name


def _pair(interface: str, *, into: str | None, port: str, switch: str) -> None:
    """A cable from an interface, of a namespace or of this machine, to a port of the bridge."""
    here = () if into is None else ("netns", into)
    ends = ("type", "veth", "peer", "name", port, "netns", switch)
    tool("ip", "link", "add", interface, *here, *ends)
    tool("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
