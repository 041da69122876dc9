"""A kept cluster, as its holder writes it into the run's directory.

`kept.json` is there from before the first file is copied until after the last one is removed, so
that whatever is left of a holder that was killed is found by it. It counts while the very process
lives that wrote it.
"""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from fencepost.clusters.hosts.process import harness_lives
from fencepost.clusters.link_protocol import LinkProtocol
from fencepost.history.atomic import write_atomically
from fencepost.history.failure import HarnessError
from fencepost.history.run_directory import RunDirectory

_LOOKS: Final = {
    LinkProtocol.KAFKA: "kafka-topics.sh --bootstrap-server {} --describe",
    LinkProtocol.ZOOKEEPER_CLIENT: "zkCli.sh -server {}",
}
"""The commands to look at a cluster, by protocol: tools of its own distribution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCluster:
    """A cluster of a run that is over, which a process keeps running for a while."""

    holder: str
    """The identity of that process (`clusters.hosts.process.harness_mark`)."""
    until: str
    """UTC, ISO 8601."""
    directories: Mapping[str, str]
    """The directory of each of its nodes, below the run's."""
    found_at: Mapping[str, str]
    """The addresses for users of each protocol: `host:port,…`."""
    is_up: bool = False
    """False: its nodes are still being started."""
    silent: tuple[str, ...] = ()
    """The nodes that did not answer in time."""

    @property
    def looks(self) -> tuple[str, ...]:
        """Return commands that look at it."""
        looks = ((_LOOKS.get(LinkProtocol(one)), at) for one, at in self.found_at.items())
        return tuple(look.format(at) for look, at in looks if look is not None)

    def as_data(self, run: RunDirectory) -> dict[str, Any]:
        """Return it for people's programs, with the commands to look at it and to end it."""
        told = {"run": str(run.root), **asdict(self)}
        return told | {"look": list(self.looks), "end": f"fencepost stop {run.root}"}


def write_kept(run: RunDirectory, kept: KeptCluster) -> None:
    """Replace what the run's directory says. Raises HarnessError if the disk refuses."""
    write_atomically(run.kept_path, json.dumps(asdict(kept), indent=2).encode() + b"\n")


def kept_of(run: RunDirectory) -> KeptCluster | None:
    """Return the run's kept cluster; None if it has none, or what kept it is dead."""
    try:
        found = json.loads(run.kept_path.read_bytes())
        kept = KeptCluster(**{**found, "silent": tuple(found["silent"])})
        datetime.fromisoformat(kept.until)
        return kept if harness_lives(kept.holder) else None
    except (OSError, ValueError, TypeError, KeyError):
        return None  # none, or not of ours: results may come from others


def is_left(run: RunDirectory) -> bool:
    """Return whether something lies in the run's directory of a kept cluster that is down."""
    there = run.kept_path.exists() or run.kept.exists()
    return there and kept_of(run) is None


def discard_kept(run: RunDirectory) -> None:
    """Remove the files of a kept cluster that is down. Raises HarnessError if the disk refuses."""
    try:
        if run.kept.is_symlink():
            run.kept.unlink()
        elif run.kept.exists():
            shutil.rmtree(run.kept)
        run.kept_path.unlink(missing_ok=True)
    except OSError as error:
        raise HarnessError(f"cannot remove {run.kept}: {error.strerror}") from error
