"""The agent on a machine for the time of a run. Copied there and run as a script, stdlib only.

It is the far end of the harness's connection: lines of JSON come in on stdin and answers go out on
stdout. It has a warden (`warden_server.py`, copied beside it) start and signal processes, and does
itself what else needs to be done over there. Nothing outlives it: when stdin ends, or nothing has
come for `_SILENCE_S_MAX` (the harness pings), it hangs up on the warden, which kills every node,
and ends when all are gone.

Requests carry an `id`, which the answer repeats; those for the warden are described there. The
others: `{"id", "op": "look", "pid"}` → `{"id", "threads", "rss_bytes", "cpu_s"}`, the state letter
of each thread, none if there is no such process; `{"id", "op": "reserve", "address", "count",
"base"}` → `{"id", "ports"}`, which stay bound here until the end; `{"id", "op": "relay", "ways"}`
→ `{"id"}`, each way an address and port here, those to which its connections are led, and the line
with which each of them begins; `{"id", "op": "ping"}` → `{"id", "wall_ns"}`. Each may be answered
by `{"id", "error"}`. The directory of the run is removed at the end.
"""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

_SILENCE_S_MAX = 30.0
"""The harness pings every few seconds: without any for so long, the network between is lost."""
_CHUNK = 1 << 18
_LINE_BYTES_MAX = 1 << 24
_SURVIVORS_EXIT_CODE = 3

Request = dict[str, object]
_Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class _Agent:
    """The work for one connection."""

    def __init__(self, warden: socket.socket, output: asyncio.StreamWriter) -> None:
        self._warden = warden
        self._output = output
        self._reservations: list[socket.socket] = []
        self._servers: list[asyncio.Server] = []
        self._mark = (
            f"{os.getpid()}:{_stat(Path('/proc/self'))[19]}:{Path('/proc/self/ns/pid').readlink()}"
        )

    async def serve(self, lines: asyncio.StreamReader, answers: asyncio.StreamReader) -> None:
        """Serve until the harness hangs up, or falls silent, or the warden ends."""
        back = asyncio.create_task(self._pass_back(answers))
        while not back.done():
            try:
                line = await asyncio.wait_for(lines.readline(), _SILENCE_S_MAX)
            except asyncio.TimeoutError:  # noqa: UP041 -- another error before Python 3.11
                return
            if not line.endswith(b"\n"):
                return
            await self._take(json.loads(line))

    async def _pass_back(self, answers: asyncio.StreamReader) -> None:
        while line := await answers.readline():
            self._output.write(line)
            await self._output.drain()

    async def _take(self, request: Request) -> None:
        own: dict[object, Callable[[Request], object]] = {
            "look": _look,
            "reserve": self._reserve,
            "ping": lambda _request: {"wall_ns": time.time_ns()},
        }
        operation = request["op"]
        if operation == "relay":
            await self._answer(request, await self._relay(request))
        elif operation in own:
            await self._answer(request, own[operation](request))
        else:
            if operation == "spawn":
                env = request["env"]
                assert isinstance(env, dict)
                request["env"] = {**os.environ, **env, "FENCEPOST_HARNESS": self._mark}
            line = json.dumps(request).encode() + b"\n"
            await asyncio.get_running_loop().sock_sendall(self._warden, line)

    async def _answer(self, request: Request, answer: object) -> None:
        assert isinstance(answer, dict)
        self._output.write(json.dumps({"id": request["id"], **answer}).encode() + b"\n")
        await self._output.drain()

    def _reserve(self, request: Request) -> Request:
        address, count, base = request["address"], request["count"], request["base"]
        assert isinstance(count, int)
        assert base is None or isinstance(base, int)
        ports = []
        for number in range(count):
            port = 0 if base is None else base + number
            reservation = socket.socket()
            self._reservations.append(reservation)
            try:
                reservation.bind((address, port))
            except OSError as error:
                return {"error": f"port {port} on {address} cannot be used: {error.strerror}"}
            # Only now: a server that sets it too may then listen beside this socket.
            reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            ports.append(reservation.getsockname()[1])
        return {"ports": ports}

    async def _relay(self, request: Request) -> Request:
        ways = request["ways"]
        assert isinstance(ways, list)
        for address, port, far_address, far_port, opening in ways:
            handler = _handler(far_address, far_port, opening=opening)
            try:
                server = await asyncio.start_server(handler, address, port, limit=_CHUNK)
            except OSError as error:
                return {"error": f"port {port} on {address} cannot be used: {error.strerror}"}
            self._servers.append(server)
        return {}


def _handler(address: str, port: int, *, opening: str) -> _Handler:
    """Leads a connection to an address, where the opening is its first line."""

    async def lead(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(address, port, limit=_CHUNK)
        except OSError:
            writer.transport.abort()
            return
        for one in (writer, far_writer):
            one.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        far_writer.write(opening.encode())
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        for one in (writer, far_writer):
            one.close()

    return lead


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes from one end to the other; pass an end on as an end, an abort as an abort."""
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.transport.abort()


def _look(request: Request) -> Request:
    directory = Path("/proc") / str(request["pid"])
    threads = []
    with contextlib.suppress(OSError):
        for thread in (directory / "task").iterdir():
            with contextlib.suppress(OSError):
                threads.append(_stat(thread)[0])
    try:
        fields = _stat(directory)
        resident_pages = int((directory / "statm").read_text().split()[1])
    except OSError:
        return {"threads": [], "rss_bytes": 0, "cpu_s": 0.0}
    ticks = int(fields[11]) + int(fields[12])
    return {
        "threads": threads,
        "rss_bytes": resident_pages * os.sysconf("SC_PAGE_SIZE"),
        "cpu_s": ticks / os.sysconf("SC_CLK_TCK"),
    }


def _stat(directory: Path) -> list[str]:
    """The fields of `stat` after the command, which is in brackets and may hold anything."""
    return (directory / "stat").read_text(errors="replace").rpartition(")")[2].split()


async def _serve(warden: socket.socket) -> None:
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=_LINE_BYTES_MAX)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin.buffer)
    transport, protocol = await loop.connect_write_pipe(
        asyncio.streams.FlowControlMixin, sys.stdout.buffer
    )
    output = asyncio.StreamWriter(transport, protocol, None, loop)
    # One descriptor to read, one to write: asyncio wants each to itself.
    answers, _ = await asyncio.open_connection(sock=warden.dup(), limit=_LINE_BYTES_MAX)
    warden.setblocking(False)
    await _Agent(warden, output).serve(lines, answers)


def main() -> None:
    """Serve stdin and stdout. The arguments: the warden's script, and the directory of the run."""
    ours, wardens = socket.socketpair()
    with wardens:
        server = subprocess.Popen(
            [sys.executable, "-I", "-S", sys.argv[1], str(wardens.fileno()), str(os.getpid())],
            pass_fds=[wardens.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A hang-up of the connection must not reach it before it was told.
            start_new_session=True,
        )
    try:
        asyncio.run(_serve(ours))
    finally:
        with contextlib.suppress(OSError):
            ours.shutdown(socket.SHUT_RDWR)
        ours.close()
        code = server.wait()
        shutil.rmtree(sys.argv[2], ignore_errors=True)
    sys.exit(_SURVIVORS_EXIT_CODE if code == _SURVIVORS_EXIT_CODE else 0)


if __name__ == "__main__":
    main()
