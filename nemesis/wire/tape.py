"""The tape: each control-plane frame as a row of the table `wire`, with what was done to it.

A frame is decoded here at the latest. A frame that cannot be decoded has its header.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from fencepost.clusters.kafka_port import Role
from fencepost.nemesis.wire.apis import FETCH
from fencepost.nemesis.wire.decoding.entities import TAPED
from fencepost.nemesis.wire.frame import Frame
from fencepost.nemesis.wire.rules import Direction, Link


class FrameFate(StrEnum):
    """The fate of a frame: the words of the column `action`."""

    FORWARDED = "forwarded"
    HELD = "held"
    RELEASED = "released"
    DELAYED = "delayed"
    DUPLICATED = "duplicated"
    REORDERED = "reordered"
    REWRITTEN = "rewritten"
    DROPPED = "dropped"
    ANSWERED = "answered"
    CUT = "cut"
    UNDELIVERABLE = "undeliverable"


class Journal(Protocol):
    """The journal to which rows go; `history.journal.TapeJournal` is one."""

    def frame(
        self, columns: Mapping[str, object], items: Sequence[Mapping[str, object]] = ()
    ) -> int:
        """Write a frame down; return its number."""

    def fate(self, frame: int, *, action: str, forwarded_ns: int | None) -> None:
        """Write down what became of it."""


class Tape:
    """Makes rows of frames."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def record(
        self, frame: Frame, fate: FrameFate, *, forwarded_ns: int | None, rule: str | None = None
    ) -> int:
        """Write a frame down as it arrives; return its number."""
        header = frame.header
        api_key, api_version = header.api_versions or (header.api_key, header.api_version)
        request = frame.direction is Direction.REQUEST
        columns = {
            **frame.decoded.columns,
            "connection": frame.connection,
            "source": frame.link.source,
            "target": frame.link.target,
            "direction": frame.direction,
            "time_ns": frame.time_ns,
            "forwarded_ns": forwarded_ns,
            "action": fate,
            "rule": rule,
            "api": frame.api,
            "api_key": api_key,
            "api_version": api_version,
            "correlation_id": header.correlation_id,
            "client_id": header.client_id if request else None,
            "size_bytes": len(frame.data),
        }
        for name in [name for name, value in columns.items() if value is None]:
            del columns[name]
        return self._journal.frame(columns, frame.items)

    def change(self, number: int, fate: FrameFate, *, forwarded_ns: int | None) -> None:
        """Write down what became of a frame that had to wait."""
        self._journal.fate(number, action=fate, forwarded_ns=forwarded_ns)


class Untaped:
    """`Tapes` where there is no tape."""

    def record(
        self, frame: Frame, fate: FrameFate, *, forwarded_ns: int | None, rule: str | None = None
    ) -> int:
        """Write nothing down."""
        del frame, fate, forwarded_ns, rule
        return -1

    def change(self, number: int, fate: FrameFate, *, forwarded_ns: int | None) -> None:
        """Write nothing down."""


Tapes = Tape | Untaped


def taped_apis(link: Link) -> frozenset[int]:
    """Return the keys of the APIs whose every frame on this link is on the tape.

    Of Fetch it is the metadata log's alone: data are too many, and their history is elsewhere.
    """
    return TAPED | {FETCH} if link.asks(Role.CONTROLLER) else TAPED
