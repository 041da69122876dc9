"""Questions to servers: `srvr` on the client port, and a sign of life on any port.

`srvr` is one of ZooKeeper's four-letter words: its answer is text, and the connection ends with it.
A server that takes part in no quorum says that it is not serving.
"""

import re
import socket
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.framing import FrameError
from fencepost.clusters.protocol.talking import Address, talk_to
from fencepost.clusters.zookeeper.view import ServerState

_TIMEOUT_S: Final = 2.0
_GRACE_S: Final = 0.5
"""The wait for slow servers (starting, stuck) once one has answered."""
_ANSWER_BYTES_MAX: Final = 1 << 16
_MODE: Final = re.compile(r"^Mode: (\w+)$", re.MULTILINE)
_ZXID: Final = re.compile(r"^Zxid: (0x[0-9a-f]+)$", re.MULTILINE)
_NOT_SERVING: Final = "not currently serving"
_NO_VERSION: Final = b"\xff" * 8
"""A first word that no server sends to another: -1 is neither an id nor a protocol's version."""


@dataclass(slots=True, kw_only=True)
class _Word:
    """`clusters.protocol.talking.Talk`: a question whose answer ends with the connection."""

    outgoing: bytes
    _received: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> str | None:
        """Take bytes of the answer; return it at its end."""
        if len(self._received) > _ANSWER_BYTES_MAX:
            raise FrameError("an unterminated answer")
        self._received += data
        return None if data else self._received.decode(errors="replace")


def ask_servers(
    servers: Mapping[NodeName, Address],
    *,
    timeout_s: float = _TIMEOUT_S,
    grace_s: float | None = _GRACE_S,
) -> dict[NodeName, ServerState]:
    """Return the state of each server that answers on its client port."""
    answers = talk_to(
        servers, lambda: _Word(outgoing=b"srvr"), timeout_s=timeout_s, grace_s=grace_s
    )
    found = {name: state_of(text) for name, text in answers.items()}
    return {name: state for name, state in found.items() if state is not None}


def state_of(text: str) -> ServerState | None:
    """Return what the answer to `srvr` says; None if it is no such answer."""
    if _NOT_SERVING in text:
        return ServerState(mode=None, zxid=None)
    mode, zxid = _MODE.search(text), _ZXID.search(text)
    if mode is None or zxid is None:
        return None
    return ServerState(mode=mode[1], zxid=int(zxid[1], 16))


def is_answered_on(
    client_ports: Collection[int],
) -> Callable[..., bool]:
    """Return a `clusters.processes.networks.IsAnswered` for servers with these client ports.

    On a client port `srvr` is asked. What is not the protocol of an election ends the connection to
    an election port, in good order, which only a server would do: that is an answer.
    """

    def is_answered(
        node: NodeName,
        address: Address,
        *,
        timeout_s: float,
        opened: Callable[[], socket.socket] = socket.socket,
    ) -> bool:
        question = b"srvr" if address[1] in client_ports else _NO_VERSION
        return bool(
            talk_to(
                {node: address},
                lambda: _Word(outgoing=question),
                timeout_s=timeout_s,
                opened=opened,
            )
        )

    return is_answered
