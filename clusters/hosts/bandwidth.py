"""The bound on a node's sending rate: a token bucket on the interface of its own network.

The bound concerns all that leaves the node: to other nodes, to clients, to the harness. That it
holds is measured, with bytes of our own that are sent from inside.
"""

import socket
import threading
import time
from pathlib import Path
from typing import Final

from fencepost.clusters.hosts.inside import socket_in, tool_in
from fencepost.clusters.hosts.tools import tool, tool_missing
from fencepost.history.failure import HarnessError

_BURST_BYTES_MIN: Final = 16_384
_BURST_S: Final = 0.01
"""The bucket holds what passes in two ticks of a slow kernel clock: below, the rate is not met."""
_LATENCY: Final = "500ms"
"""The longest wait in the queue: beyond it packets are dropped, and TCP slows down."""
_MEASURED_S: Final = 0.5
_MEASURED_BYTES_MAX: Final = 8 << 20
_TIMEOUT_S: Final = 20.0
_CHUNK: Final = 1 << 14


def limit_bandwidth(namespace: Path, interface: str, *, bits_per_s: int) -> None:
    """Bound what leaves through the interface, in place of an older bound."""
    burst = f"{_burst_bytes(bits_per_s)}b"
    bound = ("tbf", "rate", f"{bits_per_s}bit", "burst", burst, "latency", _LATENCY)
    tool_in(namespace, "tc", "qdisc", "replace", "dev", interface, "root", *bound)


def free_bandwidth(namespace: Path, interface: str) -> None:
    """Remove the bound, and check that it is gone. Do nothing if there is no bound."""
    if _bounded(namespace, interface):
        tool_in(namespace, "tc", "qdisc", "delete", "dev", interface, "root")
    if _bounded(namespace, interface):
        raise HarnessError(f"{namespace}: the bandwidth limit on {interface} was not removed")


def measured_rate(namespace: Path, address: str, *, bits_per_s: int) -> float:
    """Return the bits a second that came from inside to `address`, one of this machine's own.

    `bits_per_s`: what is expected; it says how much is sent. The first bucketful, which passes at
    once, is not counted. HarnessError if it does not come within its bound.
    """
    wanted = min(int(bits_per_s / 8 * _MEASURED_S), _MEASURED_BYTES_MAX)
    skipped = 2 * _burst_bytes(bits_per_s)
    with socket.create_server((address, 0)) as server, socket_in(namespace) as sender:
        server.settimeout(_TIMEOUT_S)
        sender.settimeout(_TIMEOUT_S)
        # Bytes must not wait in a large buffer, or all of them would leave before the end.
        thread = threading.Thread(
            target=_send, args=(sender, server.getsockname(), skipped + wanted), daemon=True
        )
        thread.start()
        try:
            receiver, _ = server.accept()
            with receiver:
                receiver.settimeout(_TIMEOUT_S)
                _receive(receiver, skipped)
                begin_s = time.monotonic()
                received = _receive(receiver, wanted)
                took_s = time.monotonic() - begin_s
        except OSError as error:
            raise HarnessError(
                f"{namespace}: no data came out of the namespace: {error}"
            ) from error
        finally:
            thread.join(_TIMEOUT_S)
    return received * 8 / max(took_s, 1e-6)


def why_no_limits() -> str | None:
    """Return why this machine cannot bound a node's sending, with the way out; None if it can.

    Tried in a namespace that is gone when the trial is over. Assumes that there are namespaces.
    """
    return _why_no_discipline(
        "tbf rate 1mbit burst 16384b latency 500ms", what="token bucket (tbf)"
    )


def why_no_netem() -> str | None:
    """Return why the kernel cannot delay, lose or reorder packets; None if it can. Tried too."""
    return _why_no_discipline("netem delay 1ms", what="netem (sch_netem)")


def _why_no_discipline(words: str, *, what: str) -> str | None:
    if (missing := tool_missing("tc")) is not None:
        return f"there is no {missing} (install iproute2)"
    try:
        tool("unshare", "--net", "sh", "-c", f"tc qdisc replace dev lo root {words}")
    except HarnessError as error:
        return f"the kernel has no {what}: {str(error).rpartition(': ')[2]}"
    return None


def _burst_bytes(bits_per_s: int) -> int:
    return max(_BURST_BYTES_MIN, int(bits_per_s / 8 * _BURST_S))


def _bounded(namespace: Path, interface: str) -> bool:
    return " tbf " in f" {tool_in(namespace, 'tc', 'qdisc', 'show', 'dev', interface)} "


def _send(sender: socket.socket, address: tuple[str, int], count: int) -> None:
    try:
        sender.connect(address)
        sender.sendall(bytes(count))
        sender.shutdown(socket.SHUT_WR)
    except OSError:
        sender.close()  # the receiver sees that it ends too early


def _receive(receiver: socket.socket, count: int) -> int:
    left = count
    while left:
        received = len(receiver.recv(min(left, _CHUNK)))
        if not received:
            raise OSError(f"it ended {left} bytes early")
        left -= received
    return count
