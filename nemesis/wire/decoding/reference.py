"""The reference cluster's own messages between brokers and controllers, as columns of `wire`.

They are BrokerRegistration and BrokerHeartbeat by name, with keys and versions that are others in
Kafka: a header means Kafka's API, and keeps what was spoken. Everything else that those nodes say
is Kafka's.
"""

import struct
from collections.abc import Mapping
from typing import Any, Final

from fencepost.clusters.protocol import dialect
from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.protocol.columns import Parts, error_name
from fencepost.clusters.protocol.entities import Unreadable
from fencepost.nemesis.wire.apis import API_KEYS
from fencepost.nemesis.wire.error_codes import error_code
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.rules import Direction

_MEANINGS: Final[Mapping[tuple[int, int], int]] = {
    dialect.REGISTRATION: API_KEYS["BrokerRegistration"],
    dialect.HEARTBEAT: API_KEYS["BrokerHeartbeat"],
    dialect.HEARTBEAT_WITH_LOWEST: API_KEYS["BrokerHeartbeat"],
}
_LENGTH: Final = struct.Struct(">i")
_CORRELATION: Final = struct.Struct(">i")
_REQUEST_HEAD_BYTES: Final = 14
"""Length, key, version, correlation id, and the length of the client's name."""
_NO_TAGS: Final = b"\x00"
_CODES: Final = {code.value: code for code in type(error_code("NONE"))}


def meant(header: Header) -> Header:
    """Return a request's header at a controller's door, by the API that it means."""
    api_versions = (header.api_key, header.api_version)
    key = _MEANINGS.get(api_versions)
    return header if key is None else header._replace(api_key=key, api_versions=api_versions)


def parts(header: Header, direction: Direction, frame: bytes) -> Parts:
    """Return the columns of a frame of the dialect, without items; raise Unreadable."""
    assert header.api_versions is not None
    if direction is Direction.REQUEST:
        begin = _REQUEST_HEAD_BYTES + len((header.client_id or "").encode()) + len(_NO_TAGS)
        fields = dialect.decoded_request(*header.api_versions, frame[begin:])
        return request_columns(fields), ()
    begin = _LENGTH.size + _CORRELATION.size + len(_NO_TAGS)
    fields = dialect.decoded_response(*header.api_versions, frame[begin:])
    return response_columns(fields), ()


def error_frame(header: Header, error: str) -> bytes:
    """Return the response with this error to a request of the dialect, as a whole frame."""
    assert header.api_versions is not None
    fields = {"errorCode": error_code(error).value}
    body = dialect.encoded_response(*header.api_versions, fields)
    content = _CORRELATION.pack(header.correlation_id) + _NO_TAGS + body
    return _LENGTH.pack(len(content)) + content


def request_columns(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a request's fields."""
    found = {"broker_id": fields["brokerId"], "broker_epoch": fields["brokerEpoch"]}
    if "listeners" in fields:
        endpoints = (f"{one['name']}://{one['host']}:{one['port']}" for one in fields["listeners"])
        features = (
            f"{one['name']} {one['minSupportedVersion']}-{one['maxSupportedVersion']}"
            for one in fields["features"]
        )
        said = f"{', '.join(endpoints)}; {', '.join(features)}"
        return found | {"incarnation_id": fields["incarnationId"], "detail": said}
    found["fetch_offset"] = fields["currentMetadataOffset"]
    if "targetState" not in fields:
        return found | {"fenced": fields["wantFence"], "shutting_down": fields["wantShutDown"]}
    state = fields["targetState"]
    return found | {
        "fenced": state == BrokerState.FENCED,
        "shutting_down": state == BrokerState.PENDING_CONTROLLED_SHUTDOWN,
    }


def response_columns(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a response's fields; raise Unreadable for an error unknown to Kafka."""
    code = _CODES.get(fields["errorCode"])
    if code is None:
        raise Unreadable(f"error code {fields['errorCode']}, which Kafka does not have")
    found: dict[str, Any] = {"error": error_name(code)}
    if "isCaughtUp" not in fields:
        return found | {"broker_epoch": fields["brokerEpoch"]}
    said = "caught up" if fields["isCaughtUp"] else "not caught up"
    if "nextState" in fields:
        state = fields["nextState"]
        fenced, leaving = state == BrokerState.FENCED, state == BrokerState.NOT_RUNNING
    else:
        fenced, leaving = fields["isFenced"], fields["shouldShutDown"]
        lowest = fields["lowestAcknowledgedOffset"]
        said += f", lowest acknowledged offset {lowest}"
        # Below -1, which is the offset before the first one, nothing is told.
        found |= {"lowest_acknowledged_offset": lowest} if lowest >= -1 else {}
    return found | {"fenced": fenced, "shutting_down": leaving, "detail": said}
