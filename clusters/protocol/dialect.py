"""The APIs that the reference cluster has of its own, in the words of their proposals.

KIP-631 as it was first written: BrokerRegistration has the key 57 and BrokerHeartbeat 58, with the
states of a broker as numbers, and a lease in the answers. From LEVEL_VISIBILITY on the heartbeat is
Kafka's own, key 63, in a version 1 with the lowest acknowledged offset.

Between Kafka's nodes 57 and 58 are other messages; these keys are spoken between the nodes of this
cluster alone. Fields that the core needs and the proposals' messages lack are tagged.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from fencepost.clusters.protocol.entities import Unreadable
from fencepost.clusters.protocol.message_decoder import DecodeError, Fields, decoder_of
from fencepost.clusters.protocol.message_definitions import (
    ALWAYS,
    Field,
    Message,
    field,
    message,
    since,
)
from fencepost.clusters.protocol.message_encoder import encoder_of

REGISTRATION: Final = (57, 0)
"""Key and version."""
HEARTBEAT: Final = (58, 0)
HEARTBEAT_WITH_LOWEST: Final = (63, 1)

_THROTTLE: Final = field("throttleTimeMs", "int32")
_ERROR: Final = field("errorCode", "int16")
_EPOCH: Final = field("brokerEpoch", "int64", default="-1")
_LEASE: Final = field("leaseDurationMs", "int64")
_CONTROLLER: Final = field("activeControllerId", "int32")


def _request(name: str, key: int, *fields: Field) -> Message:
    return message(f"{name}Request", "request", *fields, key=key)


def _response(name: str, key: int, *fields: Field) -> Message:
    return message(f"{name}Response", "response", _THROTTLE, _ERROR, *fields, key=key)


_REQUESTS: Final[Mapping[tuple[int, int], Message]] = {
    REGISTRATION: _request(
        "BrokerRegistration",
        57,
        field("brokerId", "int32"),
        _EPOCH,
        field("curMetadataOffset", "int64"),
        field(
            "listeners",
            "[]Listener",
            field("name", "string"),
            field("host", "string"),
            field("port", "uint16"),
            field("securityProtocol", "int16"),
        ),
        field(
            "features",
            "[]Feature",
            field("name", "string"),
            field("minSupportedVersion", "int16"),
            field("maxSupportedVersion", "int16"),
        ),
        field("rack", "string", nullable=True),
        field("incarnationId", "uuid", tag=0),
        field("clusterId", "string", tag=1),
    ),
    HEARTBEAT: _request(
        "BrokerHeartbeat",
        58,
        field("targetState", "int8"),
        field("brokerId", "int32"),
        _EPOCH,
        field("currentMetadataOffset", "int64"),
        field("level", "int8", tag=0, default="1"),
    ),
    HEARTBEAT_WITH_LOWEST: _request(
        "BrokerHeartbeat",
        63,
        field("brokerId", "int32"),
        _EPOCH,
        field("currentMetadataOffset", "int64"),
        field("wantFence", "bool"),
        field("wantShutDown", "bool"),
    ),
}
_RESPONSES: Final[Mapping[tuple[int, int], Message]] = {
    REGISTRATION: _response("BrokerRegistration", 57, _CONTROLLER, _EPOCH, _LEASE),
    HEARTBEAT: _response(
        "BrokerHeartbeat",
        58,
        _CONTROLLER,
        field("nextState", "int8"),
        _LEASE,
        field("isCaughtUp", "bool", tag=0),
    ),
    HEARTBEAT_WITH_LOWEST: _response(
        "BrokerHeartbeat",
        63,
        field("isCaughtUp", "bool", default="false"),
        field("isFenced", "bool", default="true"),
        field("shouldShutDown", "bool"),
        field("lowestAcknowledgedOffset", "int64", versions=since(1), default="-1"),
        field("activeControllerId", "int32", versions=ALWAYS, tag=0, default="-1"),
        field("leaseDurationMs", "int64", versions=ALWAYS, tag=1),
    ),
}


def is_dialect(api_key: int, version: int) -> bool:
    """Return whether this message is one of ours, at a controller's door."""
    return (api_key, version) in _REQUESTS


def decoded_request(api_key: int, version: int, data: bytes) -> Fields:
    """The fields of a request, its header left out. Raises Unreadable."""
    return _decoded(_REQUESTS, api_key, version, data)


def decoded_response(api_key: int, version: int, data: bytes) -> Fields:
    """The fields of a response, its header left out. Raises Unreadable."""
    return _decoded(_RESPONSES, api_key, version, data)


def encoded_request(api_key: int, version: int, fields: Fields) -> bytes:
    """A request without its header."""
    encode: Callable[[Fields], bytes] = _encoder(_REQUESTS[api_key, version], version)
    return encode(fields)


def encoded_response(api_key: int, version: int, fields: Fields) -> bytes:
    """A response without its header."""
    encode: Callable[[Fields], bytes] = _encoder(_RESPONSES[api_key, version], version)
    return encode(fields)


def _decoded(
    messages: Mapping[tuple[int, int], Message], api_key: int, version: int, data: bytes
) -> Fields:
    decode: Callable[[bytes], Fields] = _decoder(messages[api_key, version], version)
    try:
        return decode(data)
    except DecodeError as error:
        raise Unreadable(str(error)) from error


# A message holds tuples of its fields, and no list or dict: it is hashable by value.
@cache
def _decoder(one: Message, version: int) -> Any:
    return decoder_of(one, version)


@cache
def _encoder(one: Message, version: int) -> Any:
    return encoder_of(one, version)
