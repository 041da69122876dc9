"""A real sshd of the test's own: throw-away keys, an address of loopback, nothing of the user's."""

import getpass
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from fencepost.clusters.hosts.ssh.inventory import SSH_PORT, Machine
from fencepost.clusters.hosts.warden import Warden

_BOUND_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sshd:
    """A running one, and how to log in to it."""

    machine: Machine
    known_hosts: Path
    pid: int


def why_no_sshd() -> str | None:
    """What this machine lacks to run one, or None."""
    for program in ("sshd", "ssh-keygen"):
        if _found(program) is None:
            return f"no {program} here (Debian: openssh-server)"
    return None


def start_sshd(
    directory: Path,
    *,
    warden: Warden,
    address: str = "127.0.0.1",
    prefix: tuple[str, ...] = (),
) -> Sshd:
    """Start one that lets the current user in with a new key. It dies with the warden.

    `prefix`: a command that becomes sshd somewhere else.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for name in ("host_key", "user_key"):
        command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / name)]
        subprocess.run(command, check=True)
    shutil.copy(directory / "user_key.pub", directory / "authorized_keys")
    Path("/run/sshd").mkdir(exist_ok=True)
    port = SSH_PORT if prefix else _free_port(address)
    config = directory / "sshd_config"
    config.write_text(
        f"ListenAddress {address}\nPort {port}\nHostKey {directory}/host_key\n"
        f"AuthorizedKeysFile {directory}/authorized_keys\nPidFile none\nStrictModes no\n"
        "UsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\n"
    )
    command = [*prefix, str(_found("sshd")), "-D", "-e", "-f", str(config)]
    pid = warden.spawn(command, name="sshd", log=directory / "sshd.log")
    _await_port(address, port)
    kind, key, *_ = (directory / "host_key.pub").read_text().split()
    known_hosts = directory / "known_hosts"
    name = address if port == SSH_PORT else f"[{address}]:{port}"
    known_hosts.write_text(f"{name} {kind} {key}\n")
    machine = Machine(
        host=address,
        port=port,
        user=getpass.getuser(),
        identity=directory / "user_key",
        directory=str(directory / "far"),
    )
    return Sshd(machine=machine, known_hosts=known_hosts, pid=pid)


def _free_port(address: str) -> int:
    with socket.socket() as free:
        free.bind((address, 0))
        port: int = free.getsockname()[1]
        return port


def _found(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")


def _await_port(address: str, port: int) -> None:
    deadline = time.monotonic() + _BOUND_S
    while True:
        try:
            socket.create_connection((address, port), timeout=10).close()
        except OSError:
            assert time.monotonic() < deadline, "sshd does not listen"
            time.sleep(0.02)
        else:
            return
