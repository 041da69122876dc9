"""Starting and ending the cluster of a stored run, from a command's point of view.

A process of its own keeps it (`holder.py`), in a session of its own: neither the end of the command
nor `^C` at its terminal reaches it.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

from fencepost.clusters.hosts.place import DATA
from fencepost.clusters.hosts.process import end_harness
from fencepost.clusters.provision.cache import cache_dir
from fencepost.harness.kept.kept_cluster import KeptCluster, discard_kept, is_left, kept_of
from fencepost.harness.run.lock import only_run
from fencepost.harness.run.starts import read_starts
from fencepost.history.failure import HarnessError, UsageError
from fencepost.history.run_directory import RunDirectory
from fencepost.history.thinned import refuse_thinned

_HOLDER: Final = "fencepost.harness.kept.holder"
_END_S: Final = 30.0
"""It ends every node with SIGKILL, which takes a second, and removes their copies."""


def keep(
    run: RunDirectory, *, for_s: float, alongside: bool, say: Callable[[str], None]
) -> KeptCluster:
    """Start the run's nodes once more, and have them kept running for so long, once they are up.

    Raises UsageError for a run whose nodes cannot be started, or while another run is under way,
    HarnessError if they do not come up.
    """
    refuse_unkeepable(run)
    with only_run(cache_dir(), what=str(run.root), alongside=alongside):
        pass  # said at once; the holder asks again
    if is_left(run):
        discard_kept(run)
    say(f"starting the nodes of {run.root} once more, on copies of their disks")
    words = [str(run.root), str(for_s), *(["--alongside"] if alongside else [])]
    told = _told([sys.executable, "-m", _HOLDER, *words])
    if "error" in told:
        raise (UsageError if told["usage"] else HarnessError)(told["error"])
    return KeptCluster(**told)


def end_kept(run: RunDirectory) -> None:
    """End the run's kept cluster, and return when nothing of it is left.

    Raises UsageError if none is up, HarnessError if it is out of reach.
    """
    kept = kept_of(run)
    if kept is None:
        left = "; `fencepost clean` removes what is left of it" if is_left(run) else ""
        raise UsageError(f"{run.root}: no cluster of this run is up{left}")
    end_harness(kept.holder, timeout_s=_END_S)
    discard_kept(run)


def refuse_unkeepable(run: RunDirectory) -> None:
    """Raise UsageError, with the reason, if the run's nodes cannot be started once more."""
    refuse_thinned(run)
    if (kept := kept_of(run)) is not None:
        ends = f"`fencepost stop {run.root}` ends it"
        raise UsageError(f"{run.root}: its cluster is up already, until {kept.until}; {ends}")
    starts = read_starts(run)
    if starts is None:
        raise UsageError(
            f"{run.root}: its nodes cannot be started again: they must be processes of this "
            "machine (--host local), of a run whose recording is complete"
        )
    if gone := [one.node for one in starts.nodes if not (run.nodes / one.node / DATA).is_dir()]:
        raise UsageError(
            f"{run.root}: the data of its nodes are gone ({gone[0]}): they are kept only if a run "
            "is not valid, or with --keep-data"
        )


def _told(command: Sequence[str]) -> dict[str, Any]:
    """Start it and wait for its first line; whoever does not wait any more ends it."""
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    ) as starter:
        assert starter.stdout is not None
        try:
            line = starter.stdout.readline()
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(starter.pid, signal.SIGTERM)
            starter.stdout.read()  # it is at its end when the process is
            raise
    if not line:
        raise HarnessError("the process that keeps the cluster running ended and reported no error")
    found: dict[str, Any] = json.loads(line)
    return found
