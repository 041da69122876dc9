"""One node of a cluster of processes: its files, its process, and what can be done to either.

Its software says what it runs, its place says where. Every method returns when its effect was seen
on the host, or raises HarnessError.
"""

import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, Self

from fencepost.clusters.hosts.cgroups.node_group import NodeGroup
from fencepost.clusters.hosts.disk import file_sizes
from fencepost.clusters.hosts.place import DATA, KEPT, LOG, NodeProcess, Place
from fencepost.clusters.port import NodeName, NodeState
from fencepost.history.failure import HarnessError, UsageError

_SNAPSHOTS: Final = "snapshots"
_TOOL_TIMEOUT_S: Final = 60.0
"""A tool's JVM takes two seconds; on a machine that does much else, several times that."""
_POLL_S: Final = 0.02
_HOLLOW_MAX: Final = 20


class Holdings(Protocol):
    """The content of a data directory at one moment."""

    def loss(self, after: Any, /) -> str:
        """Return what of it is missing from `after`, a later one of the same node, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataHoldings:
    """`Holdings`, and which files of the data directory have any content."""

    told: Holdings
    filled: frozenset[Path]
    empty: frozenset[Path]

    def loss(self, after: Self) -> str:
        """Return what is gone, in words; the files that have a name and no content by name."""
        hollow = [str(path) for path in sorted(self.filled & after.empty)]
        if not hollow:
            return self.told.loss(after.told)
        more = f" and {len(hollow) - _HOLLOW_MAX} more" if len(hollow) > _HOLLOW_MAX else ""
        names = ", ".join(hollow[:_HOLLOW_MAX])
        return f"{self.told.loss(after.told)}; left with a name and no content: {names}{more}"


class Software(Protocol):
    """The software that one node runs."""

    @property
    def first_directory_id(self) -> str | None:
        """The id of its first data directory; None: any new one."""

    @property
    def id_file(self) -> str:
        """The file of a data directory that states its id, by its name in there."""

    def command(self, directory: Path) -> list[str]:
        """The command line that runs it in the foreground, by the files of this directory."""

    def format(self, data: Path, *, directory_id: str | None) -> None:
        """Make a formatted data directory where none exists; None: with a new id."""

    def format_command(self, directory: Path) -> list[str] | None:
        """The command of its own tool that formats a node's data; None: it has none."""

    def directory_id(self, data: Path) -> str | None:
        """The id of the data directory that holds this `id_file`; None if it states none."""

    def last_words(self, log: Path, *, since: int) -> str:
        """Return why it died, as its log from the byte `since` on tells it, in one line."""

    def holdings(self, data: Path) -> Holdings:
        """Return what a data directory holds that a power cut can lose; empty if it is absent."""


class ProcessNode:
    """A node in a place of its own. Not thread-safe; nodes do not share anything.

    `staging`: a directory of this machine, the run's own, for what is made before it is installed.
    """

    def __init__(self, name: NodeName, *, place: Place, software: Software, staging: Path) -> None:
        self.name: Final = name
        self._staging = staging
        self.place: Final = place
        self.software = software
        """The software that its next start runs, and its next wipe formats."""
        self.settings: Mapping[str, str] = {}
        """Its configuration, once it has one."""
        self.files: Sequence[str] = ()
        """The names of that configuration's files."""
        self.env: Mapping[str, str] = {}
        """The variables that its next start adds to the environment."""
        self.wanted = False
        """True if it was started and the harness has not ended it since: it may have died."""
        self.group: NodeGroup | None = None
        """The control groups that its next start is put into."""
        self._log_start_bytes = 0
        self._snapshots: set[str] = set()
        self._kept_count = 0

    @property
    def process(self) -> NodeProcess:
        """The process of the node."""
        return self.place.process

    @property
    def data(self) -> Path:
        """The data directory, as the node sees it itself."""
        return self.place.directory / DATA

    def configure(self, settings: Mapping[str, str], files: Mapping[str, str]) -> None:
        """Write its configuration: `files`, by their names in its directory. A start reads it anew.

        `settings`: what the run's record says of it.
        """
        self.settings, self.files = dict(settings), tuple(files)
        for name, text in files.items():
            self.place.write(name, text)

    def format(self) -> None:
        """Make its first data directory."""
        self._format(directory_id=self.software.first_directory_id)

    def start(self) -> None:
        """Start its process on the data that it has."""
        self._log_start_bytes = self.place.size_bytes(LOG)
        self.process.start(self.software.command(self.place.directory), self.env or None)
        self.wanted = True
        if self.group is not None and (pid := self.process.pid) is not None:
            self.group.adopt(pid)

    def stop(self, *, timeout_s: float) -> bool:
        """Send SIGTERM and wait; kill it after `timeout_s`. True if it ended on SIGTERM."""
        self.wanted = False
        return self.process.stop(timeout_s=timeout_s)

    def kill(self) -> None:
        """Send SIGKILL, also to a paused one; return when the process is gone."""
        self.wanted = False
        self.process.kill()

    def keep(self, part: str) -> None:
        """Copy a directory of its data, if it is there, to where it outlives them. It is down."""
        self._require_down("copied")
        if self.place.fetch(f"{DATA}/{part}").is_dir():
            self._kept_count += 1
            self.place.copy(f"{DATA}/{part}", f"{KEPT}/{self._kept_count:04}")

    def wipe(self, *, keep_directory_id: bool) -> None:
        """Delete all its data and format anew, which fails on what is not gone. It must be down."""
        self._require_down("wiped")
        kept_id = None
        if keep_directory_id:
            kept_id = self.software.directory_id(
                self.place.fetch(f"{DATA}/{self.software.id_file}").parent
            )
        self.place.remove(DATA)
        self._format(directory_id=kept_id)

    def empty(self) -> None:
        """Delete all its data. It must be down."""
        self._require_down("wiped")
        self.place.remove(DATA)

    def format_by_tool(self) -> None:
        """Have its own tool format its data where it runs. It must be down, and have none."""
        command = self.software.format_command(self.place.directory)
        if command is None:
            raise HarnessError(f"{self.name}: its software has no tool to format a directory")
        self._log_start_bytes = self.place.size_bytes(LOG)
        self.process.start(command, self.env or None)
        deadline = time.monotonic() + _TOOL_TIMEOUT_S
        while self.process.exit_code is None:
            if time.monotonic() > deadline:
                self.process.kill()
                raise HarnessError(f"{command[0]} had not formatted after {_TOOL_TIMEOUT_S:.0f} s")
            time.sleep(_POLL_S)
        if self.process.exit_code != 0:
            raise HarnessError(f"the formatting tool failed: {self.obituary()}")

    def change_data(self, change: Callable[[Path], str]) -> str:
        """Let `change` have its data directory, of this machine; its words. It must be down."""
        self._require_down("changed")
        found = self.place.fetch(DATA)
        if found != self.data:
            raise HarnessError(f"{self.name}: its disk is not on this machine")
        return change(found)

    def holdings(self) -> "DataHoldings":
        """Return what its data directory holds now."""
        data = self.place.fetch(DATA)
        sizes = file_sizes(data)
        return DataHoldings(
            told=self.software.holdings(data),
            filled=frozenset(path for path, size in sizes.items() if size),
            empty=frozenset(path for path, size in sizes.items() if not size),
        )

    def snapshot(self, name: str) -> None:
        """Copy its data under a name. A running node stands still meanwhile: one point in time."""
        target = _snapshot(name)
        running = self.process.state() is NodeState.RUNNING
        if running:
            self.process.pause()
        try:
            self.place.copy(DATA, target)
            self._snapshots.add(name)
        finally:
            if running:
                self.process.resume()

    def rollback(self, name: str) -> None:
        """Put the copy of that name in the place of its data. It must be down."""
        self._require_down("rolled back")
        source = _snapshot(name)
        if name not in self._snapshots:
            there = ", ".join(sorted(self._snapshots)) or "none"
            raise HarnessError(f"{self.name} has no snapshot {name}; it has: {there}")
        self.place.copy(source, DATA)

    def obituary(self) -> str:
        """Return how its process ended, and its last words, in one line."""
        log = self.place.fetch(LOG)
        words = self.software.last_words(log, since=self._log_start_bytes)
        return f"{self.name} {_end_of(self.process.exit_code)}: {words} ({log})"

    def logs(self) -> tuple[Path, ...]:
        """Return its log files, and reports that a crashed JVM left next to its log."""
        return self.place.fetch_all("*.log")

    def _format(self, *, directory_id: str | None) -> None:
        self._staging.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".format-", dir=self._staging) as staging:
            data = Path(staging) / "data"
            self.software.format(data, directory_id=directory_id)
            self.place.install(DATA, data)

    def _require_down(self, participle: str) -> None:
        if (state := self.process.state()) is not NodeState.DOWN:
            raise HarnessError(
                f"{self.name} is {state}: only a node that is down can be {participle}"
            )


def _snapshot(name: str) -> str:
    if not re.fullmatch(r"\w[\w.-]*", name):
        raise UsageError(f'"{name}" cannot name a snapshot: use letters, digits, ".", "_", "-"')
    return f"{_SNAPSHOTS}/{name}"


def _end_of(exit_code: int | None) -> str:
    if exit_code is None:  # gone from the host's view, and not yet reaped
        return "ended"
    if exit_code < 0:
        return f"was ended by signal {-exit_code}"
    return f"ended with exit code {exit_code}"
