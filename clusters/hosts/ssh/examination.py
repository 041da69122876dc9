"""The examination of an inventory's machine: what it can do, asked before a run needs it."""

from pathlib import Path, PurePosixPath
from secrets import token_hex

from clusters.hosts.ssh.carrying import COPY, far_java
from clusters.hosts.ssh.connection import SshConnection
from clusters.hosts.ssh.home import home_of
from clusters.hosts.ssh.inventory import Machine
from clusters.hosts.ssh.warden import RemoteWarden

__all__ = ["examine_machine"]


def examine_machine(machine: Machine, *, known_hosts: Path | None, java_home: Path) -> str:
    """Return what was found there, in words; HarnessError, with the way out, at the first lack.

    `java_home`: this machine's Java, which a machine may want to have copied. Nothing stays over
    there but our directory and the agent's scripts.
    """
    with SshConnection(machine, known_hosts=known_hosts) as connection:
        home = home_of(connection)
        directory = home / "runs" / f"doctor-{token_hex(4)}"
        with RemoteWarden(connection, run_id="doctor", home=home, directory=directory) as warden:
            offset_ms = warden.clock_offset_ms()
        return (
            f"{connection.user} at {home} ({_free(connection, home)} free), "
            f"{_java(connection, home, java_home)}, clock {offset_ms:+.1f} ms off"
        )


def _java(connection: SshConnection, home: PurePosixPath, java_home: Path) -> str:
    if connection.machine.java == COPY:
        return "Java to be copied there"
    return f"Java at {far_java(java_home, connection=connection, home=home)}"


def _free(connection: SshConnection, home: PurePosixPath) -> str:
    kilobytes = connection.require("df", "-Pk", str(home)).splitlines()[-1].split()[3]
    return f"{int(kilobytes) / 2**20:.1f} GiB"
