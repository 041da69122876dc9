"""Nodes on machines of the user's: `clusters.hosts.place.Host` over an inventory.

Each machine that has a node gets a connection and an agent. A node's directory over there is
`<home>/runs/<run>/<node>`, and goes with the run; what is asked of it is copied into the node's
directory here. Links lead over loopback addresses of the node's own machine, from there through one
port of this machine to where the proxy listens.
"""

import fnmatch
import json
import secrets
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Final, Self

from fencepost.clusters.hosts.disk import remove_directory
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.local import LocalProcess
from fencepost.clusters.hosts.local_host import loopback_address
from fencepost.clusters.hosts.place import LOG, NodeProcess
from fencepost.clusters.hosts.ports import ReservedPorts
from fencepost.clusters.hosts.ssh.connection import SshConnection
from fencepost.clusters.hosts.ssh.inventory import Inventory, Machine, assign
from fencepost.clusters.hosts.ssh.uploads import (
    COPY,
    carry,
    home_of,
    refuse_other_processor,
    remote_java,
    translated,
)
from fencepost.clusters.hosts.ssh.warden import RemoteWarden, Way
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeName
from fencepost.clusters.provision.cache import Progress
from fencepost.history.failure import HarnessError, UsageError

_CLOCK_OFFSET_MS_MAX: Final = 100
"""The checks allow for a wall clock that is so far off, and little more."""
_TUNNEL: Final = "fencepost.clusters.hosts.ssh.tunnel"
_SCRIPT_TIMEOUT_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploads:
    """The files that nodes need over there."""

    java_home: Path
    """This machine's Java; a machine's own may stand for it, where nodes are JVMs."""
    carried: tuple[Path, ...]
    """Directories and files of this machine that a node's command line names."""
    for_this_processor: bool = False
    """True if some of them run on no other kind of processor."""


@dataclass(slots=True, kw_only=True)
class _Site:
    """A machine that has nodes."""

    connection: SshConnection
    warden: RemoteWarden
    directory: PurePosixPath
    """The directory of the run."""
    address: str
    places: Mapping[Path, PurePosixPath]
    """The paths over there, by the paths of this machine."""
    nodes: list[NodeName] = field(default_factory=list)


class SshPlace:
    """`clusters.hosts.place.Place` on another machine.

    `far`: the node's directory over there; `here`: where copies of what it holds are put.
    """

    def __init__(
        self,
        connection: SshConnection,
        *,
        process: NodeProcess,
        address: str,
        far: PurePosixPath,
        here: Path,
    ) -> None:
        self._connection = connection
        self._process = process
        self._address = address
        self._far = far
        self._here = here

    @property
    def address(self) -> str:
        """The machine's, at which the other machines and this one find it."""
        return self._address

    @property
    def directory(self) -> Path:
        """The node's directory, as it sees it itself."""
        return Path(self._far)

    @property
    def process(self) -> NodeProcess:
        """The node's process."""
        return self._process

    def write(self, name: str, text: str) -> None:
        """Write a small file, making the directories that it needs."""
        target = self._far / name
        self._connection.require("mkdir", "-p", str(target.parent))
        self._connection.write(target, text.encode())
        copy = self._here / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text)

    def install(self, name: str, source: Path) -> None:
        """Put a copy of this machine's directory `source` in the place of `name`."""
        target = self._far / name
        self._connection.require("mkdir", "-p", str(target.parent))
        self._connection.put(source, target)

    def remove(self, name: str) -> None:
        """Delete a directory, if it is there, for certain."""
        self._connection.require("rm", "-rf", str(self._far / name), timeout_s=120.0)

    def copy(self, name: str, to: str) -> None:
        """Replace `to` by a copy of the directory `name`, which no process may write to."""
        target = self._far / to
        draft = target.with_name(f".{target.name}.new")
        self._connection.require("rm", "-rf", str(draft))
        self._connection.require("mkdir", "-p", str(target.parent))
        source = str(self._far / name)
        self._connection.require("cp", "-a", "--sparse=always", source, str(draft), timeout_s=120.0)
        self.remove(to)
        self._connection.require("mv", str(draft), str(target))

    def fetch(self, name: str) -> Path:
        """A copy here of what `name` holds now, a file or a directory."""
        source, target = self._far / name, self._here / name
        if self._connection.run("test", "-d", str(source)).exit_code == 0:
            draft = target.with_name(f".{target.name}.new")
            remove_directory(draft)
            self._connection.get(source, draft)
            remove_directory(target)
            draft.rename(target)
        elif self._connection.run("test", "-e", str(source)).exit_code == 0:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self._connection.read(source))
        elif target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        return target

    def fetch_all(self, pattern: str) -> tuple[Path, ...]:
        """Return copies here of the files whose names match ("*.log"), by name."""
        listed = self._connection.run("ls", "-1", str(self._far)).output.splitlines()
        return tuple(self.fetch(name) for name in sorted(fnmatch.filter(listed, pattern)))

    def size_bytes(self, name: str) -> int:
        """Return the size of a file in bytes; 0 if it does not exist."""
        answer = self._connection.run("stat", "-c", "%s", str(self._far / name))
        return 0 if answer.exit_code else int(answer.output)

    def bring(self, source: Path) -> Path:
        """Put a copy of this machine's file into the directory over there."""
        target = self._far / source.name
        self._connection.require("mkdir", "-p", str(self._far))
        self._connection.write(target, source.read_bytes())
        return Path(target)

    def perform(self, script: Path, *arguments: str) -> str:
        """Run a script of ours by the machine's Python; what it prints."""
        python = self._connection.machine.python
        there = str(self.bring(script))
        return self._connection.require(
            python, "-I", "-S", there, *arguments, timeout_s=_SCRIPT_TIMEOUT_S
        )


class SshHost:
    """The machines of an inventory. Entering it logs in to each that is to have a node.

    `warden`: of this machine; `directory`: of the run, here.
    """

    def __init__(
        self,
        inventory: Inventory,
        *,
        nodes: Sequence[NodeName],
        luggage: Uploads,
        run_id: str,
        warden: Warden,
        directory: Path,
        progress: Progress,
    ) -> None:
        self._progress = progress
        self._inventory = inventory
        self._machine_of = assign(nodes, inventory.machines)
        self._luggage = luggage
        self._run_id = run_id
        self._warden = warden
        self._directory = directory
        self._stack = ExitStack()
        self._sites: dict[Machine, _Site] = {}
        self._places: dict[NodeName, SshPlace] = {}

    @property
    def ledger(self) -> Ledger | None:
        """None: the undo of what is done to the machines goes with the connection."""
        return None

    def place(self, node: NodeName, *, directory: Path) -> SshPlace:
        """The node's directory over there; what is asked of it is copied into `directory`."""
        site = self._sites[self._machine_of[node]]
        site.nodes.append(node)
        far = site.directory / node
        process = _FarProcess(node, warden=site.warden, directory=far, log=far / LOG)
        process.places = site.places
        self._places[node] = SshPlace(
            site.connection, process=process, address=site.address, far=far, here=directory
        )
        return self._places[node]

    def link_address(self, source: int, target: int) -> str:
        """An address of the loopback: of the source's machine, and of this one."""
        return loopback_address(source, target)

    def lead(self, links: Sequence[tuple[NodeName, str, int]]) -> None:
        """Make the addresses of links, (source, address, port), lead to this machine's from there.

        To be called once, when the proxy may be reached.
        """
        token = secrets.token_hex(16)
        listeners = {address: self._reserved(address) for address in self._own_addresses()}
        self._open_tunnel(listeners, token=token, links=links)
        for machine, site in self._sites.items():
            reach = self._reach(site)
            site.warden.relay(
                [
                    Way(
                        address=near,
                        port=port,
                        far_address=reach,
                        far_port=listeners[reach],
                        opening=f"{token} {near} {port}\n",
                    )
                    for source, near, port in links
                    if self._machine_of.get(source) == machine
                ]
            )

    def __enter__(self) -> Self:
        try:
            for machine in dict.fromkeys(self._machine_of.values()):
                self._sites[machine] = self._reached(machine)
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Bring the logs here, end what runs over there, and hang up."""
        with self._stack:
            for place in self._places.values():
                with suppress(HarnessError):  # what is broken has been said by who needed it
                    place.fetch_all("*.log")

    def _reached(self, machine: Machine) -> _Site:
        connection = self._stack.enter_context(
            SshConnection(machine, known_hosts=self._inventory.known_hosts)
        )
        self._progress(f"{machine}: logged in as {connection.user}")
        home = home_of(connection)
        run = self._run_id.replace("/", "-")
        directory = home / "runs" / f"{run}-{secrets.token_hex(4)}"
        warden = self._stack.enter_context(
            RemoteWarden(connection, run_id=self._run_id, home=home, directory=directory)
        )
        _refuse_other_time(machine, warden.clock_offset_ms())
        return _Site(
            connection=connection,
            warden=warden,
            directory=directory,
            address=machine.address or connection.far_address,
            places=_unpacked(self._luggage, connection=connection, home=home),
        )

    def _open_tunnel(
        self,
        listeners: Mapping[str, int],
        *,
        token: str,
        links: Sequence[tuple[NodeName, str, int]],
    ) -> None:
        config = self._directory / "tunnel.json"
        config.touch(mode=0o600)
        data = {
            "listeners": list(listeners.items()),
            "token": token,
            "links": [[address, port] for _, address, port in links],
        }
        config.write_text(json.dumps(data))
        command = [sys.executable, "-m", _TUNNEL, str(config)]
        self._warden.spawn(command, name="the tunnel", log=self._directory / "tunnel.log")

    def _reach(self, site: _Site) -> str:
        """Return where this machine is found from there."""
        return self._inventory.harness_address or site.connection.own_address

    def _own_addresses(self) -> list[str]:
        return sorted({self._reach(site) for site in self._sites.values()})

    def _reserved(self, address: str) -> int:
        ports = ReservedPorts(address)
        self._stack.callback(ports.close)
        return ports.take(1)[0]


def examine_machine(machine: Machine, *, known_hosts: Path | None, java_home: Path) -> str:
    """Return what a machine can do, in words, before a run needs it.

    Raises HarnessError, with the way out, at the first lack. `java_home`: this machine's Java,
    which a machine may want to have copied. Nothing stays over there but our directory and the
    agent's scripts.
    """
    with SshConnection(machine, known_hosts=known_hosts) as connection:
        home = home_of(connection)
        directory = home / "runs" / f"doctor-{secrets.token_hex(4)}"
        with RemoteWarden(connection, run_id="doctor", home=home, directory=directory) as warden:
            offset_ms = warden.clock_offset_ms()
        return (
            f"{connection.user} at {home} ({_free(connection, home)} free), "
            f"{_java(connection, home, java_home)}, clock {offset_ms:+.1f} ms off"
        )


class _FarProcess(LocalProcess):
    """A process whose command line is written with paths of this machine."""

    places: Mapping[Path, PurePosixPath]

    def start(self, argv: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        """Start it, as `LocalProcess` does."""
        super().start(translated(argv, self.places), env)


def _unpacked(
    luggage: Uploads, *, connection: SshConnection, home: PurePosixPath
) -> dict[Path, PurePosixPath]:
    """Return where over there the nodes find each part of it."""
    if luggage.for_this_processor:
        refuse_other_processor(connection, way_out="its nodes must be of this machine's kind")
    return {
        one: (remote_java if one == luggage.java_home else carry)(
            one, connection=connection, home=home
        )
        for one in luggage.carried
    }


def _refuse_other_time(machine: Machine, offset_ms: float) -> None:
    """Refuse a clock far from this machine's: times in logs over there are compared with it."""
    if abs(offset_ms) > _CLOCK_OFFSET_MS_MAX:
        raise UsageError(
            f"the clock of {machine} is {abs(offset_ms):,.0f} ms "
            f"{'ahead of' if offset_ms > 0 else 'behind'} this machine's; beyond "
            f"{_CLOCK_OFFSET_MS_MAX} ms the times in its logs would mislead the checks: "
            "synchronise both (chrony, systemd-timesyncd)"
        )


def _java(connection: SshConnection, home: PurePosixPath, java_home: Path) -> str:
    if connection.machine.java == COPY:
        return "Java to be copied there"
    return f"Java at {remote_java(java_home, connection=connection, home=home)}"


def _free(connection: SshConnection, home: PurePosixPath) -> str:
    kilobytes = connection.require("df", "-Pk", str(home)).splitlines()[-1].split()[3]
    return f"{int(kilobytes) / 2**20:.1f} GiB"
