"""The removal of what a dead run left behind, and of nothing else.

Processes of a run die with its harness, and what it did to the machine is undone (the warden sees
to both). This is for the case that even the warden could not, and for what a harness killed with -9
could not write any more: a run that still says it is running. Its history stays; `fencepost check`
judges it.
"""

import os
import re
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import psutil

from fencepost.clusters.hosts.ledger import left_ledgers, let_go_all, undo_all
from fencepost.clusters.hosts.process import end_orphans, orphans
from fencepost.clusters.provision.cache import abandoned_drafts
from fencepost.harness.doctor.stored_runs import is_running
from fencepost.harness.kept.kept_cluster import discard_kept, is_left
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import RunState, read_manifest, write_manifest
from fencepost.history.run_directory import RunDirectory

_SCRATCH: Final = re.compile(r"fencepost-[a-z]+-(?P<pid>[1-9][0-9]*)-[a-z0-9_]{8}(\.log)?")
"""Mark and number, and what `tempfile` put behind them."""


def clean_machine(results: Path) -> list[str]:
    """Clean, and return lines that say what was done; an empty list if there was nothing to do.

    Raises HarnessError, once the rest is done, with what of the machine could not be put back.
    """
    failures = []
    ledgers = left_ledgers()
    for ledger in ledgers:
        # First of all: until its disk lets it go, a process cannot be ended, or even looked at.
        with suppress(HarnessError):  # said below
            let_go_all(ledger)
    left = orphans()
    try:
        end_orphans(left)
    except HarnessError as error:
        failures.append(str(error))
    done = [f"ended process {orphan.pid} of run {orphan.run_id}" for orphan in left]
    for ledger in ledgers:
        try:
            done += undo_all(ledger)
        except HarnessError as error:
            failures.append(str(error))
    done += [f"removed {draft}, half made" for draft in _drop_drafts()]
    done += [f"removed {path}, of a process that is gone" for path in _drop_scratch()]
    for path in sorted(results.glob("*/2*Z*/manifest.json")):
        done += _close(path)
        done += _drop_kept(RunDirectory(path.parent))
    if failures:
        raise HarnessError("; ".join(failures))
    return done


def _drop_kept(run: RunDirectory) -> list[str]:
    """Remove the copies of a cluster that was kept running by a process which is dead."""
    if not is_left(run):
        return []
    discard_kept(run)
    return [f"removed {run.kept}: what kept this cluster running is gone"]


def _drop_drafts() -> tuple[Path, ...]:
    dropped = abandoned_drafts()
    for draft in dropped:
        shutil.rmtree(draft, ignore_errors=True)
    return dropped


def _drop_scratch() -> list[Path]:
    """Remove the files for a while of harnesses that were killed, which bear mark and number."""
    found = []
    for path in sorted(Path(tempfile.gettempdir()).glob("fencepost-*")):
        of_ours = _SCRATCH.fullmatch(path.name)
        if of_ours is None or path.is_symlink() or path.lstat().st_uid != os.geteuid():
            continue
        if not psutil.pid_exists(int(of_ours["pid"])):
            shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink()
            found.append(path)
    return found


def _close(path: Path) -> list[str]:
    """Mark as failed a run whose harness is dead though its manifest says that it runs."""
    try:
        manifest = read_manifest(path)
    except HarnessError as error:
        return [f"left alone: {error}"]
    if manifest.state is not RunState.RUNNING or is_running(manifest):
        return []
    failure = "the harness died while it recorded"
    write_manifest(path, replace(manifest, state=RunState.FAILED, failure=failure))
    return [f"marked {path.parent} as failed: {failure}; 'fencepost check' can still judge it"]
