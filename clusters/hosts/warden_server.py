"""The process that is the parent of everything a run starts. Run as a script, stdlib only.

It is the one place that forks, signals and reaps, and it is single-threaded. Three things follow:

- `PR_SET_PDEATHSIG` in a child is tied to the *thread* that forked it; here that thread lives
  exactly as long as the process, so a child dies (SIGKILL) if and when the warden does.
- A pid is signalled only between its fork and its reaping, both done here one after the other, so
  a number that the kernel has given to another process is never signalled.
- What a child leaves behind in its process group is killed before the child is reaped: a zombie
  still owns the number of its group.

It ends, killing every child, when the harness has closed its end of the socket or is gone. The
latter is watched through a pidfd too: a process forked from the harness may hold a copy of the
socket. (A death signal of its own would be wrong: the harness's *thread* that made it may end.)

Messages are JSON, one a line. Requests carry an `id`, which the answer repeats:
`{"id", "op": "spawn", "argv", "cwd", "env", "log"}` → `{"id", "pid"}` or `{"id", "error"}`;
`{"id", "op": "signal", "pid", "signal", "group"}` → `{"id", "sent"}` or `{"id", "error"}`;
`{"id", "op": "will", "argv"}` → `{"id"}`: what to run as the last act; null: nothing.
Unasked: `{"exited", "code"}` (a negative code is the number of the signal that ended it) and
`{"fatal"}`.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import sys
import time

_PR_SET_PDEATHSIG = 1
_LINE_BYTES_MAX = 1 << 24
_REAPING_S = 2.0
"""The time to wait for killed children before the will: one that waits for a disk which the will
lets go does not end before."""
_LAST_REAPING_S = 8.0
"""And after it."""
_WILL_S = 120.0
"""The longest time of the last act: it undoes a few dozen things, each within a second or two."""
_SURVIVORS_EXIT_CODE = 3
"""The exit code if a child was still there after that."""

_prctl = ctypes.CDLL(None, use_errno=True).prctl


class _Warden:
    """The children, by pid, and the connection to the harness."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._children: set[int] = set()
        self._will: list[str] | None = None
        self._unread = b""

    def serve(self, *, harness_pid: int) -> bool:
        """Answer until the harness hangs up or is gone; then kill every child, and do the will.

        False if one of them is still there.
        """
        wake_up = _wake_up_on_child_exit()
        poller = select.poll()
        poller.register(self._connection, select.POLLIN)
        poller.register(wake_up, select.POLLIN)
        harness = _watch(harness_pid)
        if harness is not None:
            poller.register(harness, select.POLLIN)
        connected = True
        try:
            while connected:
                ready = {descriptor for descriptor, _ in poller.poll()}
                if wake_up.fileno() in ready:
                    wake_up.recv(4096)
                    self._report_exits()
                if self._connection.fileno() in ready:
                    connected = self._read()
                if harness in ready:
                    connected = False
        finally:
            self._kill_all()
            self._reap_all(_REAPING_S)
            self._carry_out_will()
            self._reap_all(_LAST_REAPING_S)
        return not self._children

    def _read(self) -> bool:
        received = self._connection.recv(1 << 16)
        *lines, self._unread = (self._unread + received).split(b"\n")
        for line in lines:
            self._answer(json.loads(line))
        return bool(received) and len(self._unread) <= _LINE_BYTES_MAX

    def _answer(self, request: dict[str, object]) -> None:
        operations = {"spawn": self._spawn, "signal": self._signal, "will": self._take_will}
        answer = operations[str(request["op"])](request)
        self._send({"id": request["id"], **answer})

    def _send(self, message: dict[str, object]) -> None:
        # A harness that is gone is noticed by the loop.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.sendall(json.dumps(message).encode() + b"\n")

    def _spawn(self, request: dict[str, object]) -> dict[str, object]:
        report, report_of_child = os.pipe()
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            _become(request, report=report_of_child, parent=parent)
        os.close(report_of_child)
        with open(report, "rb") as pipe:  # noqa: PTH123 -- a descriptor, not a path
            error = pipe.read().decode(errors="replace")
        if error:
            os.waitpid(pid, 0)
            return {"error": error}
        self._children.add(pid)
        return {"pid": pid}

    def _signal(self, request: dict[str, object]) -> dict[str, object]:
        self._report_exits()
        pid, number = request["pid"], request["signal"]
        assert isinstance(pid, int)
        assert isinstance(number, int)
        if pid not in self._children:
            return {"sent": False}
        try:
            (os.killpg if request.get("group") else os.kill)(pid, number)
        except PermissionError:  # a set-uid program
            return {"error": f"cannot send signal {number} to {pid}: it runs as another user"}
        return {"sent": True}

    def _take_will(self, request: dict[str, object]) -> dict[str, object]:
        argv = request["argv"]
        assert argv is None or isinstance(argv, list)
        self._will = argv
        return {}

    def _report_exits(self) -> None:
        while self._children:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(ended.si_pid, signal.SIGKILL)
            _, status = os.waitpid(ended.si_pid, 0)
            self._children.discard(ended.si_pid)
            self._send({"exited": ended.si_pid, "code": os.waitstatus_to_exitcode(status)})

    def _kill_all(self) -> None:
        for pid in self._children:
            # The group as well: a child's own children share its fate.
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    kill(pid, signal.SIGKILL)

    def _reap_all(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while self._children and time.monotonic() < deadline:
            self._report_exits()
            time.sleep(0.002)

    def _carry_out_will(self) -> None:
        """Run the will to its end, with a bound. Entries that it cannot undo stay for others."""
        if self._will is None:
            return
        # A group of its own: what ended the harness's does not end this.
        pid = os.posix_spawnp(self._will[0], self._will, os.environ, setpgroup=0)
        deadline = time.monotonic() + _WILL_S
        while time.monotonic() < deadline:
            if os.waitpid(pid, os.WNOHANG) != (0, 0):
                return
            time.sleep(0.01)
        os.kill(pid, signal.SIGKILL)


def _wake_up_on_child_exit() -> socket.socket:
    """A socket that becomes readable when a child has ended."""
    reader, writer = socket.socketpair()
    reader.setblocking(False)
    writer.setblocking(False)
    signal.set_wakeup_fd(writer.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return reader


def _watch(pid: int) -> int | None:
    """A descriptor that becomes readable when the process is gone; None if the kernel has none."""
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        sys.exit(1)
    except OSError:
        return None


def _become(request: dict[str, object], *, report: int, parent: int) -> None:
    """Turn the child into what was asked for, or say through `report` why not. Never return."""
    step = "start"
    try:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before the line above
            os._exit(1)
        os.setsid()
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # ignored by Python, and that is inherited
            signal.signal(number, signal.SIG_DFL)
        log, cwd, argv, env = (request[name] for name in ("log", "cwd", "argv", "env"))
        step = f"open the log {log}"
        _redirect(str(log))
        step = f"enter {cwd}"
        if cwd is not None:
            os.chdir(str(cwd))
        assert isinstance(argv, list)
        assert isinstance(env, dict)
        step = f"run {argv[0]}"
        os.execvpe(argv[0], argv, env)  # noqa: S606 -- no shell is the point
    except BaseException as error:  # noqa: BLE001 -- whatever it is, the harness must hear of it
        reason = error.strerror if isinstance(error, OSError) else repr(error)
        os.write(report, f"cannot {step}: {reason}".encode())
    finally:
        os._exit(127)


def _redirect(log: str) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)


def main() -> None:
    """Serve the socket whose descriptor is the first argument, for the pid in the second."""
    descriptor, harness_pid = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(descriptor, False)
    connection = socket.socket(fileno=descriptor)
    try:
        all_gone = _Warden(connection).serve(harness_pid=harness_pid)
    except Exception as error:  # noqa: BLE001 -- the last words of this process
        with contextlib.suppress(OSError):
            connection.sendall(json.dumps({"fatal": repr(error)}).encode() + b"\n")
        sys.exit(1)
    sys.exit(0 if all_gone else _SURVIVORS_EXIT_CODE)


if __name__ == "__main__":
    main()
