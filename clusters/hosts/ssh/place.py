"""A node's directory and process on another machine: `clusters.hosts.place.Place`."""

import fnmatch
import shutil
from pathlib import Path, PurePosixPath
from typing import Final

from clusters.hosts.disk import remove_directory
from clusters.hosts.place import NodeProcess
from clusters.hosts.ssh.connection import SshConnection

__all__ = ["SshPlace"]

_SCRIPT_TIMEOUT_S: Final = 120.0


class SshPlace:
    """`far`: the node's directory over there; `here`: where copies of what it holds are put."""

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
