"""One node of a cluster: its files, its process, and what can be done to either.

Every method returns when its effect was seen on the host, or raises HarnessError.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from clusters.hosts.disk import remove_directory, replace_directory
from clusters.hosts.local import LocalProcess
from clusters.hosts.warden import Warden
from clusters.kafka.configuration import Node, properties_file
from clusters.kafka.formatting import directory_id_of, format_directory
from clusters.kafka.launch import server_command
from clusters.kafka.logs import last_words
from clusters.kafka.prepared import Prepared
from clusters.kafka.voters import Seat
from clusters.port import NodeState
from history.failure import HarnessError, UsageError

__all__ = ["KafkaNode"]


class KafkaNode:
    """A node in a directory of its own. Not thread-safe; nodes do not share anything."""

    def __init__(
        self,
        node: Node,
        *,
        directory: Path,
        warden: Warden,
        prepared: Prepared,
        cluster_id: str,
        options: Sequence[str],
        seat: Seat | None = None,
    ) -> None:
        self.node: Final = node
        self.directory: Final = directory
        self.data: Final = directory / "data"
        self._log: Final = directory / "server.log"
        self._snapshots: Final = directory / "snapshots"
        self._prepared = prepared
        self._cluster_id = cluster_id
        self._options = options
        self._seat = seat
        self._log_start_bytes = 0
        self.settings: Mapping[str, str] = {}
        """Its configuration, once it has one."""
        self.process: Final = LocalProcess(
            node.name, warden=warden, directory=directory, log=self._log
        )

    def configure(self, properties: Mapping[str, str], *, hosts: str) -> None:
        """Write its configuration. A start reads it anew."""
        self.settings = dict(properties)
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "server.properties").write_text(properties_file(properties))
        (self.directory / "hosts").write_text(hosts)

    def format(self) -> None:
        """Make its first data directory: that of a voter, if it has a seat in the voter set."""
        self._format(directory_id=None if self._seat is None else self._seat.directory_id)

    def start(self) -> None:
        """Start its process on the data that it has."""
        self._log_start_bytes = self._log.stat().st_size if self._log.exists() else 0
        self.process.start(
            server_command(
                java=self._prepared.java,
                release=self._prepared.release,
                properties=self.directory / "server.properties",
                hosts=self.directory / "hosts",
                class_archive=self._prepared.class_archives.get(self.node.role),
                options=self._options,
            )
        )

    def wipe(self, *, keep_directory_id: bool) -> None:
        """Delete all its data and format anew, which fails on what is not gone. It must be down."""
        self._require_down("wiped")
        kept_id = directory_id_of(self.data) if keep_directory_id else None
        remove_directory(self.data)
        self._format(directory_id=kept_id)

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
        """Its log files; a JVM that crashed left a report beside its log."""
        return tuple(sorted(self.directory.glob("*.log")))

    def _format(self, *, directory_id: str | None) -> None:
        format_directory(
            self.data,
            bootstrap=self._prepared.bootstrap,
            cluster_id=self._cluster_id,
            node_id=self.node.node_id,
            directory_id=directory_id,
            seat=self._seat,
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
