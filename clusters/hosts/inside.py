"""Done inside of a network namespace, from outside: a tool is run there, a socket is opened there.

A namespace is named by a file by which it is entered: `/run/netns/NAME`, `/proc/PID/ns/net`.
"""

import ctypes
import os
import socket
import threading
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.tools import tool
from fencepost.history.failure import HarnessError

_CLONE_NEWNET: Final = 0x40000000
_OPEN_TIMEOUT_S: Final = 10.0


def tool_in(namespace: Path, *argv: str, text: str | None = None) -> str:
    """Return the output of a tool that was run inside; see `tool`."""
    return tool("nsenter", f"--net={namespace}", "--", *argv, text=text)


def socket_in(namespace: Path) -> socket.socket:
    """Open a TCP socket that belongs to the namespace, whoever uses it; HarnessError if it cannot.

    Only the thread that opens it enters the namespace, and ends there.
    """
    opened: list[socket.socket] = []
    failures: list[OSError] = []

    def enter_and_open() -> None:
        try:
            _enter(namespace)
            opened.append(socket.socket())
        except OSError as error:
            failures.append(error)

    thread = threading.Thread(target=enter_and_open, daemon=True)
    thread.start()
    thread.join(_OPEN_TIMEOUT_S)
    if not opened:
        why = failures[0].strerror if failures else "it takes too long"
        raise HarnessError(f"{namespace}: cannot open a socket there: {why}")
    return opened[0]


def _enter(namespace: Path) -> None:
    descriptor = os.open(namespace, os.O_RDONLY)
    try:
        if ctypes.CDLL(None, use_errno=True).setns(descriptor, _CLONE_NEWNET):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
    finally:
        os.close(descriptor)
