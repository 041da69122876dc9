"""Machines of the test's own: network namespaces of this one, each with an sshd in it."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from sshd import Sshd, start_sshd, why_no_sshd

from clusters.hosts.warden import Warden

_SUBNET = "10.214.77"
"""Guarded before anything of it exists: no packet for it leaves this machine."""
_BRIDGE = "fpfar0"


def why_no_machines() -> str | None:
    """What this machine lacks to make some, or None."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    if shutil.which("ip") is None:
        return "no ip here (Debian: iproute2)"
    return why_no_sshd()


@contextmanager
def far_machines(count: int, *, directory: Path) -> Iterator[tuple[Sshd, ...]]:
    """So many, at 10.214.77.2 and on; this machine is at 10.214.77.1 for them."""
    with ExitStack() as stack:
        _do(stack, f"ip route add unreachable {_SUBNET}.0/24 metric 9999", "ip route del {}")
        _do(stack, f"ip link add {_BRIDGE} type bridge", f"ip link del {_BRIDGE}")
        _run(f"ip addr add {_SUBNET}.1/24 dev {_BRIDGE}")
        _run(f"ip link set {_BRIDGE} up")
        warden = stack.enter_context(Warden(run_id="tests/far"))
        yield tuple(_machine(n, stack, warden, directory) for n in range(2, 2 + count))


def _machine(number: int, stack: ExitStack, warden: Warden, directory: Path) -> Sshd:
    name = f"fpfar{number}"
    _do(stack, f"ip netns add {name}", f"ip netns del {name}")
    stack.callback(_end_all_in, name)
    pair = f"ip link add {name} type veth peer name eth0 netns {name}"
    # By itself: a namespace goes some time after it was deleted.
    _do(stack, pair, f"ip link del {name}")
    _run(f"ip link set {name} master {_BRIDGE} up")
    _run(f"ip -n {name} addr add {_SUBNET}.{number}/24 dev eth0")
    _run(f"ip -n {name} link set lo up")
    _run(f"ip -n {name} link set eth0 up")
    return start_sshd(
        directory / name,
        warden=warden,
        address=f"{_SUBNET}.{number}",
        prefix=("ip", "netns", "exec", name),
    )


def _end_all_in(namespace: str) -> None:
    """Sessions of an sshd are no children of anybody's: they would keep the namespace."""
    listed = subprocess.run(
        ["ip", "netns", "pids", namespace], check=True, capture_output=True, text=True
    )
    for pid in map(int, listed.stdout.split()):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _do(stack: ExitStack, command: str, undo: str) -> None:
    _run(command)
    stack.callback(_run, undo.format(command.partition("add ")[2]))


def _run(command: str) -> None:
    argv: Sequence[str] = command.split()
    subprocess.run(argv, check=True, capture_output=True)
