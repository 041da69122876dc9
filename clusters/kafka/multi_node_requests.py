"""Requests of Kafka's to several nodes at once: see `clusters.protocol.talking`."""

import socket
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from kio.schema.api_versions.v0.request import ApiVersionsRequest
from kio.schema.api_versions.v0.response import ApiVersionsResponse

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.framing import RoundTrip
from fencepost.clusters.protocol.talking import Address, talk_to

Response = TypeVar("Response")

CLIENT_ID: Final = "fencepost"
"""The name by which a node, and a proxy before it, recognises these requests."""


def ask(
    addresses: Mapping[NodeName, Address],
    request: Any,
    response_type: type[Response],
    *,
    timeout_s: float,
    grace_s: float | None = None,
    opened: Callable[[], socket.socket] = socket.socket,
) -> dict[NodeName, Response]:
    """Send a kio request to each address, and return the responses that came, by name.

    It takes `timeout_s` at most; once one has answered, the others get `grace_s` more at most.
    `opened` opens a socket: where it belongs is where the questions come from.
    """
    return talk_to(
        addresses,
        lambda: RoundTrip(request, response_type, client_id=CLIENT_ID),
        timeout_s=timeout_s,
        grace_s=grace_s,
        opened=opened,
    )


def is_answered(
    node: NodeName,
    address: Address,
    *,
    timeout_s: float,
    opened: Callable[[], socket.socket] = socket.socket,
) -> bool:
    """Check whether an ApiVersions request to this address gets its answer in time."""
    request = ApiVersionsRequest()
    found = ask({node: address}, request, ApiVersionsResponse, timeout_s=timeout_s, opened=opened)
    return bool(found)
