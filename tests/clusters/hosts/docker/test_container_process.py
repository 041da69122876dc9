"""What a container's process is held to be, whatever the daemon has not heard of yet."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import docker.errors
import pytest

from fencepost.clusters.hosts.docker import container
from fencepost.clusters.hosts.docker.container import ContainerProcess
from fencepost.clusters.hosts.docker.daemon import ContainerSpec, Daemon
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError


def process_of(states: Iterator[dict[str, Any]], directory: Path) -> ContainerProcess:
    """A node of a daemon that says these states of its container, one after the other."""
    client = Mock()
    client.inspect_container.side_effect = lambda _: {"State": next(states)}
    spec = ContainerSpec(
        name="fencepost-broker-1",
        image="base",
        argv=(),
        env={},
        directory=directory,
        readable=(),
        user="0:0",
        hostname="broker-1",
        network="fencepost",
        address="10.0.0.2",
        memory_bytes=1 << 30,
        labels={},
    )
    daemon = Daemon(SimpleNamespace(errors=docker.errors), client)
    return ContainerProcess(spec, node="broker-1", daemon=daemon, log=directory / "server.log")


def ended_pid() -> int:
    """The number of a process that is gone."""
    with subprocess.Popen(["true"]) as gone:
        pass
    return gone.pid


def running(pid: int) -> dict[str, Any]:
    return {"Running": True, "Pid": pid, "ExitCode": 0, "OOMKilled": False}


ENDED = {"Running": False, "Pid": 0, "ExitCode": 3, "OOMKilled": False}


def test_one_that_ended_before_the_daemon_heard_of_it_has_ended(tmp_path: Path) -> None:
    pid = ended_pid()
    process = process_of(iter([*[running(pid)] * 5, *[ENDED] * 5]), tmp_path)
    process.start(["true"])
    assert (process.state(), process.exit_code, process.pid) == (NodeState.DOWN, 3, None)


def test_a_daemon_of_another_machine_is_told_by_its_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(container, "_EFFECT_TIMEOUT_S", 0.05)
    pid = ended_pid()
    process = process_of((running(pid) for _ in range(1000)), tmp_path)
    with pytest.raises(HarnessError, match=f"broker-1 runs as process {pid} of another machine"):
        process.start(["true"])
