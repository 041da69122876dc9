"""TCP ports of this machine that stay free for the nodes of a run, from choosing to the run's end.

A port that was merely found free may be taken a moment later, also by an outgoing connection, and
then a killed node could not come back. So each port stays bound here, without listening and with
SO_REUSEADDR: Linux lets a server that also sets it (as Java's do) bind and listen beside it, gives
the port to no outgoing connection, and refuses a connection while the server is down.
"""

import socket
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from fencepost.history.failure import HarnessError, UsageError

_PORT_MAX: Final = 65535


class ReservedPorts:
    """Ports on one address; `close` gives them back. The servers do not need it to stay open."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._sockets: list[socket.socket] = []

    def take(self, count: int, *, base: int | None = None) -> tuple[int, ...]:
        """Reserve `count` ports: `base`, `base` + 1, …, or any that are free.

        Raises UsageError if one of the asked-for ports is taken, HarnessError if none is left.
        """
        if base is not None and not 0 < base <= _PORT_MAX + 1 - count:
            raise UsageError(f"there are no {count} ports from {base} on; choose another port base")
        try:
            if base is None:
                return tuple(self._bind(0) for _ in range(count))
            return tuple(self._bind_asked(base + n, count=count, base=base) for n in range(count))
        except BaseException:
            self.close()
            raise

    def hold(self, ports: Iterable[int]) -> None:
        """Reserve ports of servers that have ended, as far as no other process uses them.

        Unlike `take`, also while connections of these servers wait for their end (TIME_WAIT), and
        therefore beside another run that has reserved the same.
        """
        for port in ports:
            held = socket.socket()
            held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._sockets.append(held)
            with suppress(OSError):
                held.bind((self._address, port))

    def close(self) -> None:
        """Give all ports back. Idempotent."""
        while self._sockets:
            self._sockets.pop().close()

    def _bind_asked(self, port: int, *, base: int, count: int) -> int:
        try:
            return self._bind(port)
        except OSError as error:
            raise UsageError(
                f"port {port} on {self._address} cannot be used: {error.strerror}. Ports {base} "
                f"to {base + count - 1} are needed; choose another port base, or none to use any "
                "free ports"
            ) from error

    def _bind(self, port: int) -> int:
        reservation = socket.socket()
        try:
            reservation.bind((self._address, port))
        except OSError as error:
            reservation.close()
            if port == 0:
                raise HarnessError(f"no free port on {self._address}: {error.strerror}") from error
            raise
        # Only now: to bind with it would mean to share a port that another run has reserved.
        reservation.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._sockets.append(reservation)
        bound: int = reservation.getsockname()[1]
        return bound
