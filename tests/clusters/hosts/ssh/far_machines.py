"""Machines of the test's own: network namespaces of this one, each with an sshd in it."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import yaml
from sshd import Sshd, start_sshd, why_no_sshd

from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.subnet import Subnet, claim_subnet
from fencepost.clusters.hosts.tools import tool
from fencepost.clusters.hosts.undo import RemoveInterface, RemoveNamespace
from fencepost.clusters.hosts.warden import Warden


def why_no_machines() -> str | None:
    """What this machine lacks to make some, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "no ip here (Debian: iproute2)"
    return why_no_sshd()


@contextmanager
def far_machines(count: int, *, directory: Path) -> Iterator[tuple[Sshd, ...]]:
    """So many, in a subnet of their own, at whose first address this machine is for them."""
    with (
        Ledger(run_id="tests/far") as ledger,
        Warden(run_id="tests/far", will=ledger.will) as warden,
    ):
        subnet = claim_subnet(ledger)
        own = f"fpf{os.getpid()}"
        ledger.note(RemoveInterface(name=own))
        tool("ip", "link", "add", own, "type", "bridge")
        tool("ip", "addr", "add", f"{subnet.gateway}/{subnet.network.prefixlen}", "dev", own)
        tool("ip", "link", "set", own, "up")
        names = [f"{own}-{number}" for number in range(1, count + 1)]
        try:
            yield tuple(
                _machine(
                    name, number, subnet, bridge=own, ledger=ledger, warden=warden, at=directory
                )
                for number, name in enumerate(names, start=1)
            )
        finally:
            for name in names:
                _end_all_in(name)


def inventory_of(machines: Sequence[Sshd], *, directory: Path) -> Path:
    """An inventory that names these machines, and knows their keys; written there."""
    known_hosts = directory / "known_hosts"
    known_hosts.write_text("".join(one.known_hosts.read_text() for one in machines))
    listed = [
        {
            "host": one.machine.host,
            "user": one.machine.user,
            "identity": str(one.machine.identity),
            "directory": one.machine.directory,
        }
        for one in machines
    ]
    path = directory / "machines.yaml"
    path.write_text(yaml.safe_dump({"known_hosts": str(known_hosts), "machines": listed}))
    return path


def _machine(
    name: str,
    number: int,
    subnet: Subnet,
    *,
    bridge: str,
    ledger: Ledger,
    warden: Warden,
    at: Path,
) -> Sshd:
    ledger.note(RemoveNamespace(name=name))
    tool("ip", "netns", "add", name)
    # By itself: a namespace goes some time after it was deleted.
    ledger.note(RemoveInterface(name=name))
    tool("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name)
    tool("ip", "link", "set", name, "master", bridge, "up")
    address = subnet.node(number)
    own = f"{address}/{subnet.network.prefixlen}"
    tool("ip", "-n", name, "addr", "add", own, "dev", "eth0")
    for interface in ("lo", "eth0"):
        tool("ip", "-n", name, "link", "set", interface, "up")
    prefix = ("ip", "netns", "exec", name)
    return start_sshd(at / name, warden=warden, address=address, prefix=prefix)


def _end_all_in(namespace: str) -> None:
    """Sessions of an sshd are no children of anybody's: they would keep the namespace."""
    listed = subprocess.run(
        ["ip", "netns", "pids", namespace], check=False, capture_output=True, text=True
    )
    for pid in map(int, listed.stdout.split()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
