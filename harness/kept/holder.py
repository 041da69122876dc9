"""The process that keeps the cluster of a stored run running: a harness of its own.

It starts the nodes once more, by the commands and the configuration with which the run started them
last, and as their disks were then. Each stands in a copy of its directory below `kept/`, so that
nothing that the run was judged on changes; the paths in its files follow, and the addresses of the
proxy give way to those behind it. Ports stay as they were, since the log of a quorum names them.
Nothing holds them between the run and this process, which takes those that are free from its start
on: a JVM needs seconds until it binds its own, and may have to be started again.

Like any harness it holds the machine's lock, and is the one for which a warden keeps the nodes: if
it is killed, they end. On its end by time or by a signal it removes what it copied.

    python -m fencepost.harness.kept.holder RUN SECONDS [--alongside]

Its one line on standard output is JSON: the `KeptCluster` once it is up, else `{"error", "usage"}`.
"""

import json
import os
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from fencepost.clusters.abilities import NodeStart
from fencepost.clusters.hosts.disk import copy_directory
from fencepost.clusters.hosts.local import LocalProcess
from fencepost.clusters.hosts.place import DATA, LOG, LOOPBACK
from fencepost.clusters.hosts.ports import ReservedPorts
from fencepost.clusters.hosts.process import harness_mark
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.processes.properties import escaped
from fencepost.clusters.provision.cache import cache_dir
from fencepost.harness.kept.kept_cluster import KeptCluster, discard_kept, write_kept
from fencepost.harness.run.lock import only_run
from fencepost.harness.run.starts import RunStarts, read_starts
from fencepost.history.failure import HarnessError, UsageError
from fencepost.history.run_directory import RunDirectory

_START_TIMEOUT_S: Final = 120.0
"""A start takes 2 to 4 s; on a machine that does much else, several times that."""
_AGAIN_S: Final = 2.0
"""A broker on ZooKeeper ends at once while a session of its predecessor lives, and comes later."""
_POLL_S: Final = 0.1
_LOOK_S: Final = 1.0
_DIAL_S: Final = 1.0
ALONGSIDE: Final = "--alongside"


def main() -> None:
    """Keep the cluster of the run running that the first argument names."""
    if os.fork():  # the command waits for this one: what it started must not be its child
        os._exit(0)
    root, seconds, *more = sys.argv[1:]
    run, ended = RunDirectory(Path(root)), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda _number, _frame: ended.set())
    what = f"the cluster of {root}, kept running (`fencepost stop {root}` ends it)"
    try:
        starts = read_starts(run)
        assert starts is not None, "refused before"
        alone = only_run(cache_dir(), what=what, alongside=ALONGSIDE in more)
        with alone, closing(ReservedPorts(LOOPBACK)) as ports:
            _refuse_taken_ports(run, starts.nodes)
            ports.hold(port for one in starts.nodes for port in one.ports)
            _keep(run, starts, for_s=float(seconds), ended=ended)
    except HarnessError as error:
        _tell(error=str(error), usage=isinstance(error, UsageError))
        sys.exit(1)


def _tell(**said: object) -> bool:
    """Tell whoever waits for it, once; return whether anyone did."""
    try:
        os.write(1, json.dumps(said).encode() + b"\n")
    except BrokenPipeError:
        return False
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return True


def _keep(run: RunDirectory, starts: RunStarts, *, for_s: float, ended: threading.Event) -> None:
    """Start the nodes, say so, and end them at their time, or when they have ended themselves."""
    try:
        run.kept.mkdir()
    except OSError as error:
        raise HarnessError(f"cannot make {run.kept}: {error.strerror}") from error
    kept = KeptCluster(
        holder=harness_mark(),
        until=_in(for_s),
        directories={one.node: str(run.kept / one.node) for one in starts.nodes},
        found_at=_found_at(starts.nodes),
    )
    try:
        write_kept(run, kept)
        nodes = [moved(one, starts, run=run) for one in starts.nodes]
    except HarnessError:
        discard_kept(run)
        raise
    with Warden(run_id=f"{run.root.parent.name}/{run.root.name}") as warden:
        processes = {one.node: _process(one, warden) for one in nodes}
        silent = _come_up(nodes, processes, ended)
        if len(silent) == len(nodes) and not ended.is_set():
            raise HarnessError(
                f"no node of {run.root} came up within {_START_TIMEOUT_S:.0f} s; their logs are "
                f"{run.kept}/*/{LOG}, until `fencepost clean` removes them"
            )
        kept = replace(kept, is_up=True, silent=silent, until=_in(for_s))
        deadline = time.monotonic() + for_s
        write_kept(run, kept)
        os.dup2(os.open(run.kept / "holder.log", os.O_WRONLY | os.O_CREAT, 0o644), 2)
        if ended.is_set():
            _tell(error="it was ended", usage=False)
        elif not _tell(**asdict(kept)):  # its command was killed: no one would ever stop it
            ended.set()
        while not ended.wait(_LOOK_S) and time.monotonic() < deadline:
            if all(one.state() is NodeState.DOWN for one in processes.values()):
                break
    discard_kept(run)


def _in(seconds: float) -> str:
    """Return the time that many seconds from now: UTC, ISO 8601."""
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat(timespec="seconds")


def moved(start: NodeStart, starts: RunStarts, *, run: RunDirectory) -> NodeStart:
    """Copy a node's configuration and data to its directory below `kept/`; return its start there.

    Raises HarnessError if they are not there, or cannot be copied.
    """
    source, target = run.nodes / start.node, run.kept / start.node
    paths = {str(one.directory): str(run.kept / one.node) for one in starts.nodes}
    # A properties file has what is not ASCII in another form.
    paths |= {escaped(home): escaped(new) for home, new in paths.items()}
    try:
        (target / DATA).parent.mkdir(parents=True)
        for name in start.files:
            text = (source / name).read_text(encoding="utf-8")
            (target / name).write_text(_with(_with(text, paths), starts.routes), encoding="utf-8")
    except OSError as error:
        raise HarnessError(f"cannot copy the configuration of {start.node}: {error}") from error
    copy_directory(source / DATA, target / DATA)
    command = tuple(_with(word, paths) for word in start.command)
    return replace(start, directory=target, command=command)


def _refuse_taken_ports(run: RunDirectory, nodes: Sequence[NodeStart]) -> None:
    """Raise HarnessError if another process listens where a node is to."""
    taken = [port for one in nodes for port in one.ports if _takes_connections(port)]
    if taken:
        raise HarnessError(
            f"{run.root}: its nodes need the ports that they had, and another process listens on "
            f"{', '.join(map(str, taken))}; end it first"
        )


def _with(text: str, changes: Mapping[str, str]) -> str:
    """Return the text with each of these words in place of another, where it is no part of one."""
    if not changes:
        return text
    words = "|".join(map(re.escape, sorted(changes, key=len, reverse=True)))
    return re.sub(rf"(?<![\w.-])({words})(?![\w.-])", lambda found: changes[found[1]], text)


def _process(start: NodeStart, warden: Warden) -> LocalProcess:
    log = start.directory / LOG
    process = LocalProcess(start.node, warden=warden, directory=start.directory, log=log)
    process.start(start.command)
    return process


def _come_up(
    nodes: Sequence[NodeStart], processes: Mapping[NodeName, LocalProcess], ended: threading.Event
) -> tuple[str, ...]:
    """Wait until every node listens; return those that do not within the time.

    One that ends meanwhile is started again.
    """
    deadline = time.monotonic() + _START_TIMEOUT_S
    again_s = time.monotonic() + _AGAIN_S
    while silent := tuple(one.node for one in nodes if not _listens(one)):
        if time.monotonic() > deadline or ended.wait(_POLL_S):
            break
        if time.monotonic() > again_s:
            again_s = time.monotonic() + _AGAIN_S
            for one in nodes:
                if processes[one.node].state() is NodeState.DOWN:
                    processes[one.node].start(one.command)
    return silent


def _listens(start: NodeStart) -> bool:
    """Return whether the node takes connections: where users find it, or else on its first port."""
    found = [int(address.rpartition(":")[2]) for address in start.found_at.values()]
    return all(_takes_connections(port) for port in found or start.ports[:1])


def _takes_connections(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), timeout=_DIAL_S).close()
    except OSError:
        return False
    return True


def _found_at(nodes: Sequence[NodeStart]) -> dict[str, str]:
    protocols = dict.fromkeys(protocol for one in nodes for protocol in one.found_at)
    return {
        str(protocol): ",".join(one.found_at[protocol] for one in nodes if protocol in one.found_at)
        for protocol in protocols
    }


if __name__ == "__main__":
    main()
