"""One socket of a proxied connection, with what waits to be sent through it."""

import contextlib
import fcntl
import socket
import struct
import termios
from collections import deque
from dataclasses import dataclass, field
from typing import Final

__all__ = ["End"]

_BACKLOG_BYTES_MAX: Final = 4 << 20
"""The backlog of a slow receiver at which its sender is read no more. With less, a large fetch goes
through in stops and starts.
"""
_LINGER_NONE: Final = struct.pack("ii", 1, 0)
_INT: Final = struct.Struct("i")


@dataclass(slots=True, eq=False)
class End:
    """A socket, or what waits for one that is not dialled yet. Nothing here blocks or raises."""

    connection: socket.socket | None = None
    connected: bool = False
    paused: bool = False
    """Nothing may be sent to it now: its flow is blocked."""
    mask: int = 0
    """The events that it is watched for."""
    finishing: bool = False
    """FIN is to follow the backlog."""
    shut: bool = False
    """FIN is sent."""
    read_ended: bool = False
    broken: bool = False
    """The socket answered with an error: the peer is gone."""
    backlog_bytes: int = 0
    _backlog: deque[memoryview] = field(default_factory=deque)

    @property
    def full(self) -> bool:
        """Return whether so much waits for it that its sender should not be read."""
        return self.backlog_bytes >= _BACKLOG_BYTES_MAX

    @property
    def unread_bytes(self) -> int:
        """Return the number of unread bytes in the kernel's buffer."""
        if self.connection is None:
            return 0
        answer = fcntl.ioctl(self.connection.fileno(), termios.FIONREAD, _INT.pack(0))
        count: int = _INT.unpack(answer)[0]
        return count

    def open(self, connection: socket.socket, *, connected: bool) -> None:
        """Use this socket from now on."""
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.connection, self.connected = connection, connected

    def receive(self, buffer: memoryview) -> int | None:
        """Receive into the buffer; return how much, 0 at its end, None if there is nothing now."""
        assert self.connection is not None
        try:
            count = self.connection.recv_into(buffer)
        except BlockingIOError:
            return None
        except OSError:
            self.broken = True
            return None
        self.read_ended = count == 0
        return count

    @property
    def writable(self) -> bool:
        """Return whether anything may be sent to it now."""
        return self.connected and not self.paused

    def send(self, data: bytes | memoryview) -> None:
        """Send, as far as that goes at once, and keep the rest."""
        sent = 0
        if self.connected and not self.paused and not self._backlog:
            sent = self._sent(data)
        if sent < len(data) and not self.broken:
            self._backlog.append(memoryview(bytes(data[sent:])))
            self.backlog_bytes += len(data) - sent

    def flush(self) -> None:
        """Send as much of the backlog as the socket takes."""
        while self._backlog and self.writable:
            first = self._backlog[0]
            sent = self._sent(first)
            self.backlog_bytes -= sent
            if sent < len(first):
                self._backlog[0] = first[sent:]
                return
            self._backlog.popleft()

    def shut_down(self) -> None:
        """Say that no more will be sent."""
        assert self.connection is not None
        self.shut = True
        with contextlib.suppress(OSError):  # It is gone already.
            self.connection.shutdown(socket.SHUT_WR)

    def linger_not(self) -> None:
        """Have it closed with RST in the end, and the kernel throw away what waits."""
        if self.connection is not None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)

    def _sent(self, data: bytes | memoryview) -> int:
        assert self.connection is not None
        try:
            return self.connection.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.broken = True
            return 0
