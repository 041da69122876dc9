"""Walks over the frames of one direction of a connection, sans-IO, without copying what it passes.

A frame is its length (4 bytes), then its header: of a request the API key, its version, the
correlation id and the client id; of a response the correlation id alone. Going frame by frame is
what costs a proxy its speed, so a chunk is passed on whole: only the headers in it are read (well
under a microsecond each), and only wanted frames are taken out and collected.

A header that is cut by the end of a chunk waits for the rest. Bytes that cannot be Kafka's protocol
are a `FrameError`; nothing here trusts a length.
"""

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from fencepost.clusters.protocol.framing import FRAME_BYTES_MAX, FrameError
from fencepost.clusters.protocol.varints import VarintError, read_unsigned

_LENGTH: Final = struct.Struct(">i")
_REQUEST: Final = struct.Struct(">ihhih")
_REQUEST_LENGTH_MIN: Final = _REQUEST.size - _LENGTH.size
_RESPONSE: Final = struct.Struct(">ii")
_RESPONSE_LENGTH_MIN: Final = _RESPONSE.size - _LENGTH.size
_SHORT: Final = struct.Struct(">h")
_API_KEY_MAX: Final = 1000
_API_VERSION_MAX: Final = 100
"""Versions and keys far above all that exist: beyond them, it is not a request of Kafka's."""
_PRODUCE: Final = 0
_PRODUCE_FLEXIBLE_FROM: Final = 9
_PRODUCE_TRANSACTIONAL_FROM: Final = 3
_VARINT_BYTES_MAX: Final = 10


class Header(NamedTuple):
    """A request's header. A tuple, since one is made for each request that goes by."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    answered: bool
    """True if there will be a response: a Produce with acks=0 has none."""
    api_versions: tuple[int, int] | None = None
    """Key and version on the wire, where `api_key` is only their meaning (a dialect)."""


BYTES: Final = Header(-1, 0, 0, None, answered=False)
"""The header of frames that are not read."""


class WalkStep(NamedTuple):
    """The end of a walk: pass on the bytes up to `passed_to`, then look at `frame`."""

    passed_to: int
    frame: tuple[Header, bytes] | None
    """A wanted frame that is whole: its header, and all its bytes with their length."""
    at: int
    """The place at which the walk goes on."""


class Walker:
    """One direction of a connection: where in which frame it stands.

    `read_header` gives the size of the frame with its length field, and its header (of a response:
    the header of its request); None until more bytes have come. `wanted` says whether to collect
    the frame. Each gives its answer once a frame.
    """

    def __init__(
        self,
        read_header: Callable[[memoryview, int], tuple[int, Header] | None],
        wanted: Callable[[Header], bool],
    ) -> None:
        self._read_header = read_header
        self._wanted = wanted
        self._cut = b""
        """The beginning of a frame, too short for its header."""
        self._left = 0
        """Bytes of a frame that is passed on, still to come."""
        self._collected: bytearray | None = None
        """A frame that is collected, as far as it has come."""
        self._collecting: tuple[int, Header] | None = None
        self.attentive = False
        """Stop also behind each frame that is passed on."""

    @property
    def inside(self) -> bool:
        """Return whether a frame has begun, header and all, and not ended."""
        return self._left > 0 or self._collected is not None

    def joined(self, chunk: memoryview) -> memoryview:
        """Return the chunk, behind what was cut off the one before. Call it once for each chunk."""
        if not self._cut:
            return chunk
        whole = memoryview(self._cut + bytes(chunk))
        self._cut = b""
        return whole

    def rest(self) -> bytes:
        """Return the kept part of a frame that never became whole, once no more will come."""
        rest = bytes(self._collected or self._cut)
        self._cut, self._collected, self._left = b"", None, 0
        return rest

    def walk(self, chunk: memoryview, begin: int) -> WalkStep:
        """Go on from `begin` to the end, or behind the first wanted frame; raise FrameError."""
        at, end = begin, len(chunk)
        if self._collected is not None:
            return self._collect(chunk, begin)
        while at < end:
            if self._left:
                step = min(self._left, end - at)
                at += step
                self._left -= step
                if self.attentive and not self._left:
                    return WalkStep(at, None, at)
                continue
            found = self._read_header(chunk, at)
            if found is None:
                self._cut = bytes(chunk[at:])
                return WalkStep(at, None, end)
            size, header = found
            if not self._wanted(header):
                self._left = size
                continue
            if end - at >= size:
                return WalkStep(at, (header, bytes(chunk[at : at + size])), at + size)
            self._collected, self._collecting = bytearray(chunk[at:]), found
            return WalkStep(at, None, end)
        return WalkStep(end, None, end)

    def _collect(self, chunk: memoryview, begin: int) -> WalkStep:
        assert self._collected is not None
        assert self._collecting is not None
        size, header = self._collecting
        until = min(begin + size - len(self._collected), len(chunk))
        self._collected += chunk[begin:until]
        if len(self._collected) < size:
            return WalkStep(begin, None, until)
        frame = bytes(self._collected)
        self._collected = self._collecting = None
        return WalkStep(begin, (header, frame), until)


class Unread:
    """The walk over bytes of a protocol that is not read: a chunk that a rule wants is a frame.

    `wanted` is asked for each chunk.
    """

    inside: Final = False

    def __init__(self, wanted: Callable[[], bool]) -> None:
        self._wanted = wanted
        self.attentive = False

    def joined(self, chunk: memoryview) -> memoryview:
        """Return the chunk: nothing is ever cut off."""
        return chunk

    def rest(self) -> bytes:
        """Return nothing."""
        return b""

    def walk(self, chunk: memoryview, begin: int) -> WalkStep:
        """Go on from `begin` to the end."""
        end = len(chunk)
        if not self._wanted():
            return WalkStep(end, None, end)
        return WalkStep(begin, (BYTES, bytes(chunk[begin:])), end)


def read_request_header(chunk: memoryview, at: int) -> tuple[int, Header] | None:
    """Return a request's whole size and header; None if the chunk ends first; raise FrameError."""
    if len(chunk) - at < _REQUEST.size:
        _refuse_length(chunk, at, least=_REQUEST_LENGTH_MIN)
        return None
    length, api_key, api_version, correlation_id, client_size = _REQUEST.unpack_from(chunk, at)
    if not _REQUEST_LENGTH_MIN <= length <= FRAME_BYTES_MAX:
        raise _no_frame(length)
    if not (
        0 <= api_key <= _API_KEY_MAX
        and 0 <= api_version <= _API_VERSION_MAX
        and -1 <= client_size <= length - _REQUEST_LENGTH_MIN
    ):
        raise FrameError(
            f"a request of API {api_key}, version {api_version}, with a client id of "
            f"{client_size} bytes: not Kafka's protocol"
        )
    begin = at + _REQUEST.size
    end = begin + max(client_size, 0)
    if end > len(chunk):
        return None
    client_id = None if client_size < 0 else str(chunk[begin:end], "utf-8", "replace")
    size = _LENGTH.size + length
    answered = True
    if api_key == _PRODUCE:
        acks = _acks(chunk, end, min(len(chunk), at + size), api_version)
        if acks is None and len(chunk) < at + size:
            return None
        answered = acks != 0
    return size, Header(api_key, api_version, correlation_id, client_id, answered)


def read_correlation_id(chunk: memoryview, at: int) -> tuple[int, int] | None:
    """Return a response's whole size and its correlation id; None if the chunk ends before it."""
    if len(chunk) - at < _RESPONSE.size:
        _refuse_length(chunk, at, least=_RESPONSE_LENGTH_MIN)
        return None
    length, correlation_id = _RESPONSE.unpack_from(chunk, at)
    if not _RESPONSE_LENGTH_MIN <= length <= FRAME_BYTES_MAX:
        raise _no_frame(length)
    return _LENGTH.size + length, correlation_id


def _refuse_length(chunk: memoryview, at: int, *, least: int) -> None:
    """Raise FrameError if the length of a frame, as far as it is there, cannot be one."""
    if len(chunk) - at >= _LENGTH.size:
        length: int = _LENGTH.unpack_from(chunk, at)[0]
        if not least <= length <= FRAME_BYTES_MAX:
            raise _no_frame(length)


def _no_frame(length: int) -> FrameError:
    return FrameError(f"a frame of {length} bytes: not Kafka's protocol")


def _acks(chunk: memoryview, at: int, end: int, api_version: int) -> int | None:
    """Return the acks of a Produce whose header ends at `at`; None if they are not before `end`."""
    if api_version >= _PRODUCE_FLEXIBLE_FROM:
        # The header's tagged fields: clients send none; with some, an answer is expected.
        if at >= end or chunk[at]:
            return None if at >= end else -1
        try:
            coded, taken = read_unsigned(bytes(chunk[at + 1 : min(end, at + _VARINT_BYTES_MAX)]), 0)
        except VarintError:
            return None
        size, at = max(coded - 1, 0), at + 1 + taken
    elif api_version >= _PRODUCE_TRANSACTIONAL_FROM:
        if at + _SHORT.size > end:
            return None
        size, at = max(_SHORT.unpack_from(chunk, at)[0], 0), at + _SHORT.size
    else:
        size = 0
    if at + size + _SHORT.size > end:
        return None
    acks: int = _SHORT.unpack_from(chunk, at + size)[0]
    return acks


def behind_tags(frame: bytes, at: int) -> int:
    """Return the end of the tagged fields that begin here."""
    count, at = read_unsigned(frame, at)
    for _ in range(count):
        _, at = read_unsigned(frame, at)
        size, at = read_unsigned(frame, at)
        at += size
    return at
