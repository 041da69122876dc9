"""The proxy: `python -m fencepost.nemesis.wire.process CONFIG`, a process that `Wire` starts.

It listens, writes the tape, and does what it is told through a Unix socket of the harness's. It
ends when that is closed; when the harness dies, the warden ends it.

The configuration is JSON: `control` (the socket's path), `origin_ns` (of the run's clock),
`directory` (the run's raw directory, for the tape), `links`, and `dialect` (whether the nodes are
the reference cluster's).
"""

import gc
import json
import select
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from fencepost.history.clock import Clock
from fencepost.history.failure import HarnessError
from fencepost.history.journal import TapeJournal
from fencepost.nemesis.wire.control import flows_of, link_of, rule_of, status_data
from fencepost.nemesis.wire.server import Proxy

_CHUNK: Final = 1 << 16


def serve(config: Mapping[str, Any]) -> None:
    """Run the proxy until the harness hangs up."""
    with (
        socket.socket(socket.AF_UNIX) as control,
        closing(TapeJournal(Path(config["directory"]))) as journal,
    ):
        control.connect(config["control"])
        links = [link_of(data) for data in config["links"]]
        clock = Clock(origin_ns=config["origin_ns"])
        try:
            proxy = Proxy(links, journal=journal, clock=clock, dialect=config["dialect"])
        except HarnessError as error:
            _say(control, {"error": str(error)})
            return
        with closing(proxy):
            orders = _Orders(proxy, control)
            proxy.watch(control.fileno(), select.EPOLLIN, lambda _: orders.read())
            _say(control, {"answer": None})
            # Objects that exist by now stay to the end: the collector need not look at them again.
            gc.collect()
            gc.freeze()
            while orders.connected:
                proxy.step()


class _Orders:
    """The harness's requests, done one after the other."""

    def __init__(self, proxy: Proxy, control: socket.socket) -> None:
        self.connected = True
        self._proxy = proxy
        self._control = control
        self._unread = b""
        self._operations: Final[Mapping[str, Callable[[Mapping[str, Any]], Any]]] = {
            "add": lambda order: proxy.add(rule_of(order["rule"])),
            "release": lambda order: asdict(proxy.release(order["name"])),
            "discard": lambda order: proxy.discard(order["name"]),
            "block": lambda order: proxy.block(flows_of(order["flows"])),
            "unblock": lambda order: proxy.unblock(
                None if order["flows"] is None else flows_of(order["flows"])
            ),
            "cut": lambda order: proxy.cut(flows_of(order["pairs"])),
            "name_topics": lambda order: proxy.name_topics(order["names"]),
            "status": lambda _: status_data(proxy.status()),
        }

    def read(self) -> None:
        """Take what has come, and do it."""
        try:
            received = self._control.recv(_CHUNK)
        except OSError:
            received = b""
        *lines, self._unread = (self._unread + received).split(b"\n")
        for line in lines:
            self._do(json.loads(line))
        if not received:
            self.connected = False

    def _do(self, order: Mapping[str, Any]) -> None:
        try:
            answer = {"answer": self._operations[order["op"]](order)}
        except HarnessError as error:
            answer = {"error": str(error)}
        _say(self._control, answer)


def _say(control: socket.socket, message: Mapping[str, Any]) -> None:
    control.sendall(json.dumps(message).encode() + b"\n")


if __name__ == "__main__":
    serve(json.loads(Path(sys.argv[1]).read_text()))
