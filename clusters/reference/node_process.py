"""One node of a reference cluster on this machine: its files, its process, and what is done to it.

Every method returns when its effect was seen on the host, or raises HarnessError.
"""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from clusters.hosts.disk import remove_directory, replace_directory
from clusters.hosts.local import LocalProcess
from clusters.hosts.warden import Warden
from clusters.kafka.configuration import Node, properties_file
from clusters.kafka.logs import last_words
from clusters.port import NodeState
from clusters.reference.formatting import format_directory, looked_at
from history.failure import HarnessError, UsageError

__all__ = ["ReferenceNode"]


class ReferenceNode:
    """A node in a directory of its own. Not thread-safe; nodes do not share anything."""

    def __init__(self, node: Node, *, directory: Path, warden: Warden, cluster_id: str) -> None:
        self.node: Final = node
        self.directory: Final = directory
        self.data: Final = directory / "data"
        self._log: Final = directory / "server.log"
        self._snapshots: Final = directory / "snapshots"
        self._cluster_id = cluster_id
        self._log_start_bytes = 0
        self.settings: Mapping[str, str] = {}
        """Its configuration, once it has one."""
        self.process: Final = LocalProcess(
            node.name, warden=warden, directory=directory, log=self._log
        )

    @property
    def properties(self) -> Path:
        """Its configuration's file."""
        return self.directory / "server.properties"

    @property
    def hosts(self) -> Path:
        """The file by which it finds the others."""
        return self.directory / "hosts"

    def configure(self, properties: Mapping[str, str], *, hosts: str) -> None:
        """Write its configuration. A start reads it anew."""
        self.settings = dict(properties)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.properties.write_text(properties_file(properties))
        self.hosts.write_text(hosts)

    def format(self) -> None:
        """Make its first data directory."""
        self._format(directory_id=None)

    def start(self) -> None:
        """Start its process on the data that it has."""
        self._log_start_bytes = self._log.stat().st_size if self._log.exists() else 0
        command = [sys.executable, "-m", "clusters.reference", "--config", str(self.properties)]
        self.process.start(command)

    def wipe(self, *, keep_directory_id: bool) -> None:
        """Delete all its data and format anew. It must be down."""
        self._require_down("wiped")
        meta = looked_at(self.data).meta
        remove_directory(self.data)
        kept = meta.directory_id if keep_directory_id and meta is not None else None
        self._format(directory_id=kept)

    def snapshot(self, name: str) -> None:
        """Copy its data under a name. A running node stands still meanwhile: one point in time."""
        target = self._snapshot(name)
        running = self.process.state() is NodeState.RUNNING
        if running:
            self.process.pause()
        try:
            target.parent.mkdir(exist_ok=True)
            replace_directory(target, by=self.data)
        finally:
            if running:
                self.process.resume()

    def rollback(self, name: str) -> None:
        """Put the copy of that name in the place of its data. It must be down."""
        self._require_down("rolled back")
        source = self._snapshot(name)
        if not source.is_dir():
            there = sorted(path.name for path in self._snapshots.glob("*"))
            raise HarnessError(
                f"{self.node.name} has no snapshot {name}; it has: {', '.join(there) or 'none'}"
            )
        replace_directory(self.data, by=source)

    def obituary(self) -> str:
        """How its process ended, and the last it said, in one line."""
        words = last_words(self._log, since=self._log_start_bytes)
        return f"{self.node.name} {_end_of(self.process.exit_code)}: {words} ({self._log})"

    def logs(self) -> tuple[Path, ...]:
        """Its log files."""
        return tuple(sorted(self.directory.glob("*.log")))

    def _format(self, *, directory_id: int | None) -> None:
        format_directory(
            self.data,
            node_id=self.node.node_id,
            cluster_id=self._cluster_id,
            directory_id=directory_id,
        )

    def _require_down(self, participle: str) -> None:
        if (state := self.process.state()) is not NodeState.DOWN:
            raise HarnessError(
                f"{self.node.name} is {state}: only a node that is down can be {participle}"
            )

    def _snapshot(self, name: str) -> Path:
        if not re.fullmatch(r"\w[\w.-]*", name):
            raise UsageError(f'"{name}" cannot name a snapshot: use letters, digits, ".", "_", "-"')
        return self._snapshots / name


def _end_of(exit_code: int | None) -> str:
    if exit_code is None:  # gone from the host's view, and not yet reaped
        return "ended"
    if exit_code < 0:
        return f"was ended by signal {-exit_code}"
    return f"ended with exit code {exit_code}"
