"""Nodes as processes of this machine, all on 127.0.0.1: needs no rights and no preparation.

Every address of 127.0.0.0/8 is on Linux's loopback, so each link can have one of its own: the link
from the s-th to the t-th party is 127.(100 + s).t.1, at the port that the target listens on.
"""

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final, Self

from fencepost.clusters.hosts.disk import remove_directory, replace_directory
from fencepost.clusters.hosts.ledger import Ledger
from fencepost.clusters.hosts.local import LocalProcess
from fencepost.clusters.hosts.place import LOG, LOOPBACK, NodeProcess
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeName
from fencepost.history.failure import HarnessError

_FIRST_BYTE: Final = 100
_SCRIPT_TIMEOUT_S: Final = 120.0


def loopback_address(source: int, target: int) -> str:
    """Return the loopback address for the link from one party to another, by their numbers."""
    return f"127.{_FIRST_BYTE + source}.{target}.1"


class LocalPlace:
    """A directory of this machine and a process in it: `clusters.hosts.place.Place`.

    What it does to files serves every place that shares this machine's. `address`: where its node
    listens. `process`: what runs there.
    """

    def __init__(self, directory: Path, *, process: NodeProcess, address: str = LOOPBACK) -> None:
        self._directory = directory
        self._process = process
        self._address = address

    @property
    def address(self) -> str:
        """The address at which its node listens and is found."""
        return self._address

    @property
    def directory(self) -> Path:
        """The node's directory."""
        return self._directory

    @property
    def process(self) -> NodeProcess:
        """The node's process."""
        return self._process

    def write(self, name: str, text: str) -> None:
        """Write a small file, making the directories that it needs."""
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def install(self, name: str, source: Path) -> None:
        """Put a copy of the directory `source` in the place of `name`."""
        target = self._directory / name
        target.parent.mkdir(parents=True, exist_ok=True)
        replace_directory(target, by=source)

    def remove(self, name: str) -> None:
        """Delete a directory, if it is there, for certain."""
        remove_directory(self._directory / name)

    def copy(self, name: str, to: str) -> None:
        """Put a copy of the directory `name` in the place of `to`."""
        self.install(to, self._directory / name)

    def fetch(self, name: str) -> Path:
        """The file or directory itself."""
        return self._directory / name

    def fetch_all(self, pattern: str) -> tuple[Path, ...]:
        """The files themselves."""
        return tuple(sorted(self._directory.glob(pattern)))

    def size_bytes(self, name: str) -> int:
        """Return the size of a file in bytes; 0 if it does not exist."""
        path = self._directory / name
        return path.stat().st_size if path.exists() else 0

    def bring(self, source: Path) -> Path:
        """Put a copy of the file into the directory."""
        self._directory.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copyfile(source, self._directory / source.name))

    def perform(self, script: Path, *arguments: str) -> str:
        """Run a script of ours; what it prints."""
        command = [sys.executable, "-I", "-S", str(script), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=_SCRIPT_TIMEOUT_S
        )
        if done.returncode:
            raise HarnessError(f"{script.name} failed: {done.stderr.strip()[-500:]}")
        return done.stdout


class LocalHost:
    """The host that is this machine: `clusters.hosts.place.Host`."""

    def __init__(self, warden: Warden, *, ledger: Ledger | None = None) -> None:
        self._warden = warden
        self._ledger = ledger

    @property
    def ledger(self) -> Ledger | None:
        """The ledger in which the undo of changes to the machine is written."""
        return self._ledger

    def place(self, node: NodeName, *, directory: Path) -> LocalPlace:
        """The node's own directory, and a process in it under the warden."""
        process = LocalProcess(node, warden=self._warden, directory=directory, log=directory / LOG)
        return LocalPlace(directory, process=process)

    def link_address(self, source: int, target: int) -> str:
        """Return an address of the loopback that no other link uses."""
        return loopback_address(source, target)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: the host leaves nothing but processes, which the warden ends."""
