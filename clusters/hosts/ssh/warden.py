"""The harness's end of the warden on another machine: all that runs there for a run."""

import hashlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from fencepost.clusters.abilities import NodeUsage
from fencepost.clusters.hosts.process import RUN_VARIABLE
from fencepost.clusters.hosts.ssh import agent
from fencepost.clusters.hosts.ssh.connection import SshConnection
from fencepost.clusters.hosts.warden_client import WardenClient
from fencepost.clusters.port import NodeState
from fencepost.history.failure import HarnessError, UsageError

_AGENT: Final = Path(agent.__file__)
_SERVER: Final = Path(__file__).parent.with_name("warden_server.py")
_PYTHON_MIN: Final = (3, 9)
_PING_S: Final = 5.0
_LOOKS: Final = 5
_CLOSE_TIMEOUT_S: Final = 15.0
_SURVIVORS_EXIT_CODE: Final = 3
"""The agent's own, see there."""
_GONE: Final = frozenset("ZXx")
_STOPPED: Final = frozenset("Tt")


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """A way over there: connections to `port` at `address` reach `far_port` at `far_address`."""

    address: str
    port: int
    far_address: str
    far_port: int
    opening: str = ""
    """The line that is said there first."""


class RemoteWarden(WardenClient):
    """Starts processes on a machine that die when the harness, the connection or the agent does.

    `home`: our directory over there; `directory`: that of the run, which goes with the agent.
    Raises UsageError if the machine has no Python that will do.
    """

    def __init__(
        self,
        connection: SshConnection,
        *,
        run_id: str,
        home: PurePosixPath,
        directory: PurePosixPath,
    ) -> None:
        super().__init__()
        self._connection = connection
        self._run_id = run_id
        python = connection.machine.python
        _refuse_old_python(connection, python)
        agent_script, server = map(str, _brought(connection, home))
        connection.require("mkdir", "-p", str(directory))
        self._channel = connection.open(python, "-I", agent_script, server, str(directory))
        self._closing = threading.Event()
        self._closed = False
        self._listener.start()
        self._pinger = threading.Thread(target=self._ping, name="ping", daemon=True)
        self._pinger.start()

    def state(self, pid: int) -> NodeState:
        """Return its state: paused only if *every* thread is stopped; down if gone or a zombie."""
        threads = self.ask(op="look", pid=pid)["threads"]
        assert isinstance(threads, list)
        states = set(threads) - _GONE
        if not states or self.exit_code(pid) is not None:
            return NodeState.DOWN
        return NodeState.PAUSED if states <= _STOPPED else NodeState.RUNNING

    def usage(self, pid: int) -> NodeUsage | None:
        """Return what a process uses, all its threads together; None if it does not exist."""
        answer = self.ask(op="look", pid=pid)
        rss_bytes, cpu_s = answer["rss_bytes"], answer["cpu_s"]
        assert isinstance(rss_bytes, int)
        assert isinstance(cpu_s, float)
        return NodeUsage(rss_bytes=rss_bytes, cpu_s=cpu_s) if answer["threads"] else None

    def reserve(self, count: int, *, address: str, base: int | None = None) -> tuple[int, ...]:
        """Return ports of the machine's address that stay free for its nodes until the end.

        Raises UsageError if one that was asked for is taken.
        """
        answer = self.ask(op="reserve", address=address, count=count, base=base)
        if "error" in answer:
            raise UsageError(f"{self._connection.machine}: {answer['error']}")
        ports = answer["ports"]
        assert isinstance(ports, list)
        return tuple(ports)

    def relay(self, ways: Sequence[Way]) -> None:
        """Lead connections over there as the ways say."""
        answer = self.ask(op="relay", ways=[astuple(way) for way in ways])
        if "error" in answer:
            raise HarnessError(f"{self._connection.machine}: {answer['error']}")

    def clock_offset_ms(self) -> float:
        """Return its clock's lead over this machine's, in ms: the best of a few looks."""
        looks = [self._clock_look() for _ in range(_LOOKS)]
        _, offset_ns = min(looks)
        return offset_ns / 1e6

    def _clock_look(self) -> tuple[int, int]:
        """Return how long a look took, and the offset in the middle of it, in ns."""
        begin_ns = time.time_ns()
        wall_ns = self.ask(op="ping")["wall_ns"]
        end_ns = time.time_ns()
        assert isinstance(wall_ns, int)
        return end_ns - begin_ns, wall_ns - (begin_ns + end_ns) // 2

    def close(self) -> None:
        """Kill every child that is left over there, and end. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._closing.set()
        self._channel.shutdown_write()
        self._listener.join(_CLOSE_TIMEOUT_S)
        ended = self._channel.exit_status_ready()
        code = self._channel.recv_exit_status() if ended else None
        self._channel.close()
        if code == _SURVIVORS_EXIT_CODE:
            raise HarnessError(
                f"{self._connection.machine}: a process of this run survived SIGKILL over there"
            )

    def _environment(self, env: Mapping[str, str] | None) -> dict[str, str]:
        # The agent adds what it has itself, and its own mark.
        return {**(env or {}), RUN_VARIABLE: self._run_id}

    def _send(self, line: bytes) -> None:
        self._channel.sendall(line)

    def _lines(self) -> Iterator[bytes]:
        with self._channel.makefile("rb") as lines:
            yield from lines

    def _who(self) -> str:
        return f"the agent on {self._connection.machine}"

    def _obituary(self) -> str:
        if self._closing.is_set():
            return f"{self._who()} is closed: nothing can be started or signalled any more"
        said = _last_line(self._channel)
        return f"{self._who()} is gone{said}; every process of the run over there is gone with it"

    def _ping(self) -> None:
        """Show the agent that the harness lives, until the close or until no answer comes."""
        while not self._closing.wait(_PING_S):
            try:
                self.ask(op="ping")
            except HarnessError:
                return


def _refuse_old_python(connection: SshConnection, python: str) -> None:
    way_out = f"set 'python' of this machine to one that is {_PYTHON_MIN[0]}.{_PYTHON_MIN[1]}+"
    answer = connection.run(python, "-c", "import sys; print(*sys.version_info[:2])")
    if answer.exit_code:
        raise UsageError(f"{connection.machine} has no {python}; {way_out}")
    if tuple(map(int, answer.output.split())) < _PYTHON_MIN:
        found = ".".join(answer.output.split())
        raise UsageError(f"{python} on {connection.machine} is {found}; {way_out}")


def _brought(connection: SshConnection, directory: PurePosixPath) -> tuple[PurePosixPath, ...]:
    """The agent's scripts over there, copied if they are not what is here."""
    contents = [script.read_bytes() for script in (_AGENT, _SERVER)]
    digest = hashlib.sha256(b"".join(contents)).hexdigest()[:12]
    place = directory / f"agent-{digest}"
    connection.require("mkdir", "-p", str(place))
    targets = (place / _AGENT.name, place / _SERVER.name)
    for target, content in zip(targets, contents, strict=True):
        if connection.read(target) != content:
            connection.write(target, content)
    return targets


def _last_line(channel: object) -> str:
    recv = getattr(channel, "recv_stderr")  # noqa: B009 -- of a channel that may be closed
    try:
        lines = recv(1 << 16).decode(errors="replace").strip().splitlines()
    except OSError:
        return ""
    return f" ({lines[-1]})" if lines else ""
