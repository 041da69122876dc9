"""The effects that a session asks of the shell that runs it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from fencepost.nemesis.wire.frame import Frame


class Side(StrEnum):
    """An end of a proxied connection, as the proxy sees it."""

    NEAR = "near"
    """Towards the party that dialled."""
    FAR = "far"
    """Towards the target."""


class Send(NamedTuple):
    """Send these bytes to a side, behind all that was sent before.

    A tuple, since one is made for each chunk that goes by.
    """

    side: Side
    data: bytes | memoryview
    """A view is of the buffer that the bytes came in: good until more is received."""


@dataclass(frozen=True, slots=True)
class Finish:
    """Send no more to this side: FIN, behind all that was sent."""

    side: Side


@dataclass(frozen=True, slots=True)
class Reset:
    """Close this side at once, with RST."""

    side: Side


@dataclass(frozen=True, slots=True)
class Wake:
    """Call `due` at this time."""

    at_ns: int


@dataclass(frozen=True, slots=True)
class Resumed:
    """A direction that stood still goes on: its sender may be read again."""


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """Send this request to its target over a connection of its own, and drop the answer."""

    frame: Frame
    copy: bool
    """True: the frame is there twice now, and the tape shows both."""


@dataclass(frozen=True, slots=True)
class Broken:
    """The connection was cut, since its bytes are not Kafka's protocol."""

    reason: str


Effect = Send | Finish | Reset | Wake | Resumed | ProxyRequest | Broken
