"""The sockets of one session: reads for it, does what it asks, and closes what is over.

A side that is not read is not watched for bytes; its end is then seen when it is read again, behind
its last bytes, as it should be. A reset is always reported, and may destroy nothing: what the side
had sent is read at once and handed to the session, which knows what it is still worth.
"""

import contextlib
import fcntl
import select
import socket
import struct
import termios
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, assert_never

from nemesis.wire.effects import Finish, Reset, Send, Side
from nemesis.wire.pipe import SENDER
from nemesis.wire.rules import Direction, Flow
from nemesis.wire.sessions import Session

__all__ = ["BACKLOG_BYTES_MAX", "Connection", "Loop"]

BACKLOG_BYTES_MAX: Final = 4 << 20
"""What waits for a slow receiver before its sender is read no more. With less, a large fetch goes
through in stops and starts."""
_LOOPBACK: Final = "127.0.0.1"
_OTHER: Final = {Side.NEAR: Side.FAR, Side.FAR: Side.NEAR}
_DIRECTION_FROM: Final = {side: direction for direction, side in SENDER.items()}
_LINGER_NONE: Final = struct.pack("ii", 1, 0)
_INT: Final = struct.Struct("i")
_GONE: Final = select.EPOLLERR | select.EPOLLHUP


class Loop(Protocol):
    """What a connection needs of the loop that runs it."""

    @property
    def buffer(self) -> memoryview:
        """To receive into; shared by all."""

    def watch(self, descriptor: int, mask: int, handler: Callable[[int], None]) -> None:
        """Call `handler` when something of `mask`, or an error, is there; level-triggered."""

    def change(self, descriptor: int, mask: int) -> None:
        """Watch for something else."""

    def forget(self, descriptor: int) -> None:
        """Watch no more."""

    def now_ns(self) -> int:
        """The time of the run."""

    def is_blocked(self, flow: Flow) -> bool:
        """Whether this flow is blocked now."""

    def touch(self, session: Session) -> None:
        """Something of this session changed: its connection is to be brought up to date."""


@dataclass(slots=True, eq=False)
class _End:
    """One socket, or what waits for one that is not dialled yet."""

    connection: socket.socket | None = None
    connected: bool = False
    mask: int = 0
    backlog: deque[memoryview] = field(default_factory=deque)
    backlog_bytes: int = 0
    finishing: bool = False
    """FIN is to follow the backlog."""
    shut: bool = False
    """FIN is sent."""
    read_ended: bool = False
    broken: bool = False
    """It answered with an error: it is gone."""


class Connection:
    """A session with its sockets. Without `near`, it runs an errand of the proxy's own."""

    def __init__(self, session: Session, near: socket.socket | None, loop: Loop) -> None:
        self.session: Final = session
        self._loop = loop
        self._ends: dict[Side, _End | None] = {Side.NEAR: None, Side.FAR: _End()}
        link = session.link
        self._flows: Final[dict[Direction, Flow]] = {
            Direction.REQUEST: (link.source, link.target),
            Direction.RESPONSE: (link.target, link.source),
        }
        if near is not None:
            self._ends[Side.NEAR] = _End(connected=True)
            self._open(Side.NEAR, near)
        for direction, flow in self._flows.items():
            if loop.is_blocked(flow):
                session.block(direction)
        self.dial()

    @property
    def over(self) -> bool:
        """Whether both its sockets are closed for good."""
        return not any(self._ends.values())

    def dial(self) -> None:
        """Connect to the target, unless it was done or a partition lies in between."""
        end = self._ends[Side.FAR]
        blocked = any(map(self._loop.is_blocked, self._flows.values()))
        if end is None or end.connection is not None or blocked:
            return
        far = socket.socket()
        far.setblocking(False)
        far.connect_ex((_LOOPBACK, self.session.link.port))
        self._open(Side.FAR, far)

    def set_blocked(self, flow: Flow, *, blocked: bool) -> None:
        """A flow was blocked, or is no more."""
        for direction, own in self._flows.items():
            if own != flow:
                continue
            if blocked:
                self.session.block(direction)
            else:
                self.session.unblock(direction, self._loop.now_ns())

    def withheld_bytes(self, flow: Flow) -> int:
        """What waits in this flow, here and in the kernel's buffers before us."""
        total = 0
        for direction, own in self._flows.items():
            if own != flow:
                continue
            sender, receiver = self._ends[SENDER[direction]], self._ends[_OTHER[SENDER[direction]]]
            total += self.session.carried_bytes(direction)
            total += 0 if receiver is None else receiver.backlog_bytes
            if sender is not None and sender.connection is not None:
                total += _unread_bytes(sender.connection)
        return total

    def do(self, effect: Send | Finish | Reset) -> None:
        """Do what the session asked for."""
        end = self._ends[effect.side]
        if end is None:
            return
        match effect:
            case Send(data=data):
                self._send(effect.side, end, data)
            case Finish():
                end.finishing = True
            case Reset():
                if end.connection is not None:
                    option = (socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
                    end.connection.setsockopt(*option)
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

    def _open(self, side: Side, connection: socket.socket) -> None:
        end = self._ends[side]
        assert end is not None
        end.connection = connection
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._loop.watch(connection.fileno(), 0, lambda mask: self._happened(side, mask))
        self._loop.touch(self.session)

    def _close_if_over(self, side: Side, end: _End) -> None:
        if end.broken:
            self._lose(side, end)
        elif end.connection is None:
            # Nobody is left who would want to be connected.
            nothing = not end.backlog and not self.session.carried_bytes(Direction.REQUEST)
            if self._ends[Side.NEAR] is None and nothing:
                self._close(side)
        elif end.read_ended and (end.shut or self.session.is_gone(side)):
            self._close(side)
        elif end.finishing and not end.shut and not end.backlog and self._writable(side, end):
            end.shut = True
            with contextlib.suppress(OSError):  # It is gone already.
                end.connection.shutdown(socket.SHUT_WR)
            self._close_if_over(side, end)

    def _happened(self, side: Side, mask: int) -> None:
        end = self._ends[side]
        assert end is not None
        self._loop.touch(self.session)
        if not end.connected:
            self._connected(side, end)
        elif mask & select.EPOLLOUT:
            self._flush(side, end)
        if mask & select.EPOLLIN and self.session.reads(side):
            self._read(side, end)
        elif mask & _GONE:
            end.broken = True

    def _connected(self, side: Side, end: _End) -> None:
        assert end.connection is not None
        if end.connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._close(side)
            self.session.refuse()
            return
        end.connected = True
        self._flush(side, end)

    def _read(self, side: Side, end: _End) -> None:
        assert end.connection is not None
        buffer = self._loop.buffer
        try:
            count = end.connection.recv_into(buffer)
        except BlockingIOError:
            return
        except OSError:
            end.broken = True
            return
        now_ns = self._loop.now_ns()
        if count:
            self.session.receive(_DIRECTION_FROM[side], buffer[:count], now_ns)
        else:
            end.read_ended = True
            self.session.end(side, now_ns)

    def _lose(self, side: Side, end: _End) -> None:
        """The side is gone: take what it had sent, as far as it can still be read."""
        assert end.connection is not None
        buffer = self._loop.buffer
        with contextlib.suppress(OSError):
            while not end.read_ended and (count := end.connection.recv_into(buffer)):
                # A copy: nothing is sent before the buffer is needed again.
                chunk = memoryview(bytes(buffer[:count]))
                self.session.receive(_DIRECTION_FROM[side], chunk, self._loop.now_ns())
        self._close(side)
        self.session.lose(side, self._loop.now_ns())
        self._loop.touch(self.session)

    def _send(self, side: Side, end: _End, data: bytes | memoryview) -> None:
        sent = 0
        if end.broken:
            return
        if not end.backlog and self._writable(side, end):
            assert end.connection is not None
            try:
                sent = end.connection.send(data)
            except BlockingIOError:
                pass
            except OSError:
                end.broken = True
                return
        if sent < len(data):
            rest = memoryview(bytes(data[sent:]))
            end.backlog.append(rest)
            end.backlog_bytes += len(rest)

    def _flush(self, side: Side, end: _End) -> None:
        assert end.connection is not None
        try:
            while end.backlog and self._writable(side, end):
                sent = end.connection.send(end.backlog[0])
                end.backlog_bytes -= sent
                if sent < len(end.backlog[0]):
                    end.backlog[0] = end.backlog[0][sent:]
                    return
                end.backlog.popleft()
        except BlockingIOError:
            return
        except OSError:
            end.broken = True

    def _writable(self, side: Side, end: _End) -> bool:
        """Whether anything may be sent to this side now, as far as we decide it."""
        return end.connected and not self._loop.is_blocked(
            self._flows[_DIRECTION_FROM[_OTHER[side]]]
        )

    def _mask(self, side: Side, end: _End) -> int:
        if not end.connected:
            return select.EPOLLOUT
        mask = 0
        if end.backlog and self._writable(side, end):
            mask |= select.EPOLLOUT
        other = self._ends[_OTHER[side]]
        takes = other is None or (other.connected and not _is_full(other))
        if takes and not end.read_ended and self.session.reads(side):
            mask |= select.EPOLLIN
        return mask

    def _close(self, side: Side) -> None:
        end = self._ends[side]
        self._ends[side] = None
        if end is not None and end.connection is not None:
            self._loop.forget(end.connection.fileno())
            end.connection.close()


def _is_full(end: _End) -> bool:
    return end.backlog_bytes >= BACKLOG_BYTES_MAX


def _unread_bytes(connection: socket.socket) -> int:
    count: int = _INT.unpack(fcntl.ioctl(connection.fileno(), termios.FIONREAD, _INT.pack(0)))[0]
    return count
