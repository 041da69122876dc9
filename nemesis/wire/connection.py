"""The sockets of one session, read for it, written as it asks, and closed when they are over.

A side that is not read is not watched for bytes; its end is then seen when it is read again, behind
its last bytes, as it should be. A reset is always reported, and destroys nothing: what the side had
sent is read at once and handed to the session, which knows what it is still worth.
"""

import contextlib
import errno
import fcntl
import select
import socket
import struct
import termios
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, assert_never

from fencepost.nemesis.wire.effects import Finish, Reset, Side
from fencepost.nemesis.wire.pipe import RECEIVER, SENDER
from fencepost.nemesis.wire.rules import Direction, Flow
from fencepost.nemesis.wire.sessions import Session

_OTHER: Final = {Side.NEAR: Side.FAR, Side.FAR: Side.NEAR}
_BIND_ADDRESS_NO_PORT: Final = 24
"""Linux's IP_BIND_ADDRESS_NO_PORT, for which this Python has no name."""
_REDIAL_NS: Final = 50_000_000
_GONE: Final = select.EPOLLERR | select.EPOLLHUP
_BACKLOG_BYTES_MAX: Final = 4 << 20
"""The backlog of a slow receiver at which its sender is read no more. With less, a large fetch goes
through in stops and starts.
"""
_LINGER_NONE: Final = struct.pack("ii", 1, 0)
_INT: Final = struct.Struct("i")


class Loop(Protocol):
    """The loop that runs connections, as far as a connection uses it."""

    @property
    def buffer(self) -> memoryview:
        """The buffer to receive into; shared by all."""

    def watch(self, descriptor: int, mask: int, handler: Callable[[int], None]) -> None:
        """Call `handler` when something of `mask`, or an error, is there; level-triggered."""

    def change(self, descriptor: int, mask: int) -> None:
        """Watch for something else."""

    def forget(self, descriptor: int) -> None:
        """Watch no more."""

    def now_ns(self) -> int:
        """Return the time of the run."""

    def is_blocked(self, flow: Flow) -> bool:
        """Return whether this flow is blocked now."""

    def wake(self, at_ns: int, handler: Callable[[], None]) -> None:
        """Call `handler` at this time."""

    def touch(self, session: Session) -> None:
        """Bring the connection of this session up to date: something of the session changed."""


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
        """Return whether the backlog is too large to read more from its sender."""
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

    def close(self) -> None:
        """Give the socket up; what waits for it waits for the next one."""
        if self.connection is not None:
            self.connection.close()
        self.connection, self.connected, self.broken, self.mask = None, False, False, 0

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


class ProxyConnection:
    """A session with its sockets. Without `near`, it runs an errand of the proxy's own."""

    def __init__(self, session: Session, near: socket.socket | None, loop: Loop) -> None:
        self.session: Final = session
        self._loop = loop
        self._ends: dict[Side, End | None] = {Side.NEAR: None, Side.FAR: End()}
        link = session.link
        self._redials_ns: Final = round(link.redials_s * 1e9)
        self._redials_until_ns = 0
        """The time until which a target that refuses is dialled again; 0: it has not refused."""
        self._flows: Final[dict[Direction, Flow]] = {
            Direction.REQUEST: (link.source, link.target),
            Direction.RESPONSE: (link.target, link.source),
        }
        if near is not None:
            self._ends[Side.NEAR] = End()
            self._open(Side.NEAR, near, connected=True)
        for flow in self._flows.values():
            if loop.is_blocked(flow):
                self.set_blocked(flow, blocked=True)
        self.dial()

    @property
    def over(self) -> bool:
        """Return whether both its sockets are closed for good."""
        return not any(self._ends.values())

    def dial(self) -> None:
        """Connect to the target, unless it was done or a partition lies in between."""
        end = self._ends[Side.FAR]
        blocked = any(map(self._loop.is_blocked, self._flows.values()))
        if end is None or end.connection is not None or blocked:
            return
        far = socket.socket()
        far.setblocking(False)
        link = self.session.link
        if link.dials_from is not None:
            # Without a port: the kernel finds one that is free for this very target.
            far.setsockopt(socket.IPPROTO_IP, _BIND_ADDRESS_NO_PORT, 1)
            far.bind((link.dials_from, 0))
        error = far.connect_ex((link.dials, link.port))
        if error in (0, errno.EINPROGRESS):
            self._open(Side.FAR, far, connected=False)
        else:
            far.close()
            self._refused()

    def set_blocked(self, flow: Flow, *, blocked: bool) -> None:
        """Take note that a flow was blocked, or is no longer."""
        for direction, own in self._flows.items():
            if own != flow:
                continue
            if (receiver := self._ends[RECEIVER[direction]]) is not None:
                receiver.paused = blocked
            if blocked:
                self.session.block(direction)
            else:
                self.session.unblock(direction, self._loop.now_ns())

    def withheld_bytes(self, flow: Flow) -> int:
        """Return the bytes that wait in this flow, here and in the kernel's buffers before us."""
        total = 0
        for direction, own in self._flows.items():
            if own == flow:
                sender, receiver = SENDER[direction], RECEIVER[direction]
                total += self.session.carried_bytes(direction)
                total += end.unread_bytes if (end := self._ends[sender]) is not None else 0
                total += end.backlog_bytes if (end := self._ends[receiver]) is not None else 0
        return total

    def send(self, side: Side, data: bytes | memoryview) -> None:
        """Send what the session wants to be sent."""
        end = self._ends[side]
        if end is not None:
            end.send(data)
            if end.backlog_bytes or end.broken:
                self._loop.touch(self.session)

    def close_side(self, effect: Finish | Reset) -> None:
        """End a side as the session wants it."""
        self._loop.touch(self.session)
        end = self._ends[effect.side]
        if end is None:
            return
        match effect:
            case Finish():
                end.finishing = True
            case Reset():
                end.linger_not()
                self._close(effect.side)
            case _:
                assert_never(effect)

    def update(self) -> None:
        """Close what is over, and watch for what is wanted now. Call it after anything changed."""
        for side, end in self._ends.items():
            if end is not None:
                self._close_if_over(side, end)
        for side, end in self._ends.items():
            if end is None or end.connection is None:
                continue
            if (mask := self._mask(side, end)) != end.mask:
                end.mask = mask
                self._loop.change(end.connection.fileno(), mask)

    def close(self) -> None:
        """Close both sockets at once."""
        for side in Side:
            self._close(side)

    def _open(self, side: Side, connection: socket.socket, *, connected: bool) -> None:
        end = self._ends[side]
        assert end is not None
        end.open(connection, connected=connected)
        self._loop.watch(connection.fileno(), 0, lambda mask: self._happened(side, end, mask))
        self._loop.touch(self.session)

    def _happened(self, side: Side, end: End, mask: int) -> None:
        if mask == select.EPOLLIN:
            self._read(side, end)
            return
        self._loop.touch(self.session)
        if not end.connected:
            self._dialled(end)
            if end.connection is None:
                return  # It is dialled again later.
        elif mask & select.EPOLLOUT:
            end.flush()
        if mask & select.EPOLLIN and self.session.reads(side):
            self._read(side, end)
        elif mask & _GONE:
            end.broken = True

    def _dialled(self, end: End) -> None:
        assert end.connection is not None
        if end.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            if self._loop.is_blocked(self._flows[Direction.RESPONSE]):
                end.broken = True  # The source hears of it once the partition heals.
            else:
                self._refused()
        else:
            end.connected = True

    def _refused(self) -> None:
        end, now_ns = self._ends[Side.FAR], self._loop.now_ns()
        self._redials_until_ns = self._redials_until_ns or now_ns + self._redials_ns
        if end is not None and now_ns < self._redials_until_ns:
            if end.connection is not None:
                self._loop.forget(end.connection.fileno())
            end.close()
            self._loop.wake(now_ns + _REDIAL_NS, self.dial)
            return
        self._close(Side.FAR)
        self.session.refuse()
        self._loop.touch(self.session)

    def _read(self, side: Side, end: End) -> None:
        buffer = self._loop.buffer
        count = end.receive(buffer)
        now_ns = self._loop.now_ns()
        if count:
            if self.session.receive(side, buffer[:count], now_ns):
                return  # Nothing has to be brought up to date, which costs as much again.
        elif end.read_ended:
            self.session.end(side, now_ns)
        self._loop.touch(self.session)

    def _close_if_over(self, side: Side, end: End) -> None:
        if end.broken:
            self._lose(side, end)
            return
        if end.connection is None:
            # The client is gone and has left nothing to send: no connection is needed.
            nothing = not (end.backlog_bytes or self.session.carried_bytes(Direction.REQUEST))
            if self._ends[Side.NEAR] is None and nothing:
                self._close(side)
            return
        if end.finishing and end.writable and not (end.shut or end.backlog_bytes):
            end.shut_down()
        if end.read_ended and (end.shut or self.session.is_gone(side)):
            self._close(side)

    def _lose(self, side: Side, end: End) -> None:
        """Lose a side that is gone: take what it had sent, as far as it can still be read."""
        now_ns = self._loop.now_ns()
        while not end.read_ended and (count := end.receive(self._loop.buffer)):
            # A copy: nothing is sent before the buffer is needed again.
            chunk = memoryview(bytes(self._loop.buffer[:count]))
            self.session.receive(side, chunk, now_ns)
        self._close(side)
        self.session.lose(side, now_ns)
        self._loop.touch(self.session)

    def _mask(self, side: Side, end: End) -> int:
        if not end.connected:
            return select.EPOLLOUT
        mask = 0
        if end.backlog_bytes and end.writable:
            mask |= select.EPOLLOUT
        other = self._ends[_OTHER[side]]
        takes = other is None or (other.connected and not other.full)
        if takes and not end.read_ended and self.session.reads(side):
            mask |= select.EPOLLIN
        return mask

    def _close(self, side: Side) -> None:
        end = self._ends[side]
        self._ends[side] = None
        if end is not None and end.connection is not None:
            self._loop.forget(end.connection.fileno())
            end.connection.close()
