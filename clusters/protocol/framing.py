"""Kafka's frames and headers, sans-IO: entities to bytes, and bytes, however cut, to entities.

A frame is its length (4 bytes, big-endian), a header and a message. Entities are kio's; their class
says which header they have.
"""

import io
import struct
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from kio.serial import entity_reader, entity_writer
from kio.static.primitive import i32

FRAME_BYTES_MAX: Final = 100 << 20
"""Kafka's own default for `socket.request.max.bytes`: beyond it, it is not a frame of Kafka's."""

_LENGTH: Final = struct.Struct(">i")

Response = TypeVar("Response")


class FrameError(Exception):
    """The bytes are not the frame that was expected."""


@dataclass(slots=True)
class FrameBuffer:
    """Bytes in, whole frames (without their length) out."""

    _bytes: bytearray = field(default_factory=bytearray)

    def feed(self, data: bytes) -> None:
        """Take bytes as they came."""
        self._bytes += data

    def next_frame(self) -> bytes | None:
        """The next whole frame, or None until more bytes have come. Raises FrameError."""
        if len(self._bytes) < _LENGTH.size:
            return None
        (length,) = _LENGTH.unpack_from(self._bytes)
        if not 0 <= length <= FRAME_BYTES_MAX:
            raise FrameError(f"a frame of {length} bytes: not Kafka's protocol")
        end = _LENGTH.size + length
        if len(self._bytes) < end:
            return None
        frame = bytes(self._bytes[_LENGTH.size : end])
        del self._bytes[:end]
        return frame


def request_frame(request: Any, *, correlation_id: int, client_id: str) -> bytes:
    """A kio request as a whole frame."""
    header_type = request.__header_schema__
    header = header_type(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=i32(correlation_id),
        client_id=client_id,
    )
    body = io.BytesIO()
    entity_writer(header_type)(body, header)
    entity_writer(type(request))(body, request)
    return _LENGTH.pack(body.tell()) + body.getvalue()


class RoundTrip(Generic[Response]):
    """One request and its response on a connection that carries nothing else meanwhile."""

    def __init__(
        self,
        request: Any,
        response_type: type[Response],
        *,
        client_id: str,
        correlation_id: int = 1,
    ) -> None:
        self.outgoing: Final = request_frame(
            request, correlation_id=correlation_id, client_id=client_id
        )
        self._response_type: Final = response_type
        self._correlation_id: Final = correlation_id
        self._incoming = FrameBuffer()

    def feed(self, data: bytes) -> Response | None:
        """Take bytes of the answer; the response once it is whole. Raises FrameError."""
        self._incoming.feed(data)
        frame = self._incoming.next_frame()
        return None if frame is None else self._parsed(frame)

    def _parsed(self, frame: bytes) -> Response:
        response_type: Any = self._response_type
        try:
            header, offset = entity_reader(response_type.__header_schema__)(frame, 0)
            response, _ = entity_reader(response_type)(frame, offset)
        except Exception as error:
            raise FrameError(f"not a {response_type.__name__}: {error!r}") from error
        if header.correlation_id != self._correlation_id:
            raise FrameError(
                f"answer to request {header.correlation_id}, asked was {self._correlation_id}"
            )
        parsed: Response = response
        return parsed
