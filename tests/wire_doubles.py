"""Frames of Kafka's protocol, written by kio, and a journal that remembers."""

import io
import struct
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_origin, get_type_hints
from uuid import UUID

from kio.schema.alter_partition.v3 import request as alter_partition
from kio.schema.alter_partition.v3 import response as altered_partition
from kio.schema.broker_heartbeat.v1 import request as heartbeat
from kio.schema.broker_heartbeat.v1 import response as heartbeaten
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer
from kio.static.primitive import i32, i32Timedelta, i64

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.framing import request_frame
from fencepost.nemesis.wire.decoding.reference import meant
from fencepost.nemesis.wire.effects import Effect, Send, Side
from fencepost.nemesis.wire.frame import TopicNames
from fencepost.nemesis.wire.pipe import HeldFrame
from fencepost.nemesis.wire.rulebook import Rulebook
from fencepost.nemesis.wire.rules import Link, Rule
from fencepost.nemesis.wire.sessions import Common, Session
from fencepost.nemesis.wire.streams import proxied
from fencepost.nemesis.wire.tape import Tape

BROKER, CONTROLLER = NodeName("broker-1"), NodeName("controller-1")
LINK = Link(source=BROKER, target=CONTROLLER, address="127.77.1.1", port=1)
TOPIC_ID = UUID(int=7)
TOPIC_ID_TEXT = "AAAAAAAAAAAAAAAAAAAABw"


class Notes:
    """A journal of frames: rows in their order, with their last fate."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def frame(
        self, columns: Mapping[str, object], items: Sequence[Mapping[str, object]] = ()
    ) -> int:
        self.rows.append({**columns, "items": [dict(item) for item in items]})
        return len(self.rows) - 1

    def fate(self, frame: int, *, action: str, forwarded_ns: int | None) -> None:
        self.rows[frame] |= {"action": action, "forwarded_ns": forwarded_ns}

    def fates(self) -> list[tuple[str, str, str]]:
        """(API, direction, action) of each frame."""
        return [(row["api"], str(row["direction"]), str(row["action"])) for row in self.rows]


class Line:
    """A session on a link, and what came out of it."""

    def __init__(self, link: Link, *rules: Rule, dialect: bool = False) -> None:
        self.notes = Notes()
        self.far = self.near = b""
        self.others: list[Effect] = []
        self.book: Rulebook[HeldFrame] = Rulebook()
        for rule in rules:
            self.book.add(rule)
        common = Common(
            book=self.book,
            tape=Tape(self.notes),
            names=TopicNames(),
            act=self._act,
            meant=meant if dialect else None,
        )
        self.session = proxied(0, link, common)

    def _act(self, _session: Session, effect: Effect) -> None:
        if not isinstance(effect, Send):
            self.others.append(effect)
        elif effect.side is Side.FAR:
            self.far += bytes(effect.data)
        else:
            self.near += bytes(effect.data)

    def ask(self, data: bytes, *, now_ns: int = 1) -> None:
        self.session.receive(Side.NEAR, memoryview(data), now_ns)

    def tell(self, data: bytes, *, now_ns: int = 1) -> None:
        self.session.receive(Side.FAR, memoryview(data), now_ns)

    def release(self, name: str, *, now_ns: int = 9) -> None:
        """Remove a rule, and deliver what it holds."""
        entry = self.book.remove(name)
        assert entry is not None
        for waiting in tuple(entry.held):
            entry.let_go(waiting, delivered=self.session.resume(waiting, now_ns))


def join_request(correlation_id: int = 1, *, isr: Sequence[int] = (1, 2), epoch: int = 5) -> bytes:
    """An AlterPartition v3 of broker 1: this ISR for partition 0."""
    members = tuple(
        alter_partition.BrokerState(broker_id=i32(one), broker_epoch=i64(10 + one)) for one in isr
    )
    partition = alter_partition.PartitionData(
        partition_index=i32(0),
        leader_epoch=i32(4),
        new_isr_with_epochs=members,
        partition_epoch=i32(epoch),
    )
    request = alter_partition.AlterPartitionRequest(
        broker_id=i32(1),
        broker_epoch=i64(11),
        topics=(alter_partition.TopicData(topic_id=TOPIC_ID, partitions=(partition,)),),
    )
    return request_frame(request, correlation_id=correlation_id, client_id="1")


def join_response(
    correlation_id: int = 1, *, error: ErrorCode = ErrorCode.none, isr: Sequence[int] = (1, 2)
) -> bytes:
    partition = altered_partition.PartitionData(
        partition_index=i32(0),
        error_code=error,
        leader_id=i32(1),
        leader_epoch=i32(4),
        isr=tuple(map(i32, isr)),
        partition_epoch=i32(6),
    )
    response = altered_partition.AlterPartitionResponse(
        throttle_time=i32Timedelta(timedelta()),
        error_code=ErrorCode.none,
        topics=(altered_partition.TopicData(topic_id=TOPIC_ID, partitions=(partition,)),),
    )
    return response_frame(response, correlation_id)


def beat_request(correlation_id: int = 1, *, offset: int = 100) -> bytes:
    request = heartbeat.BrokerHeartbeatRequest(
        broker_id=i32(1),
        broker_epoch=i64(11),
        current_metadata_offset=i64(offset),
        want_fence=False,
        want_shut_down=False,
    )
    return request_frame(request, correlation_id=correlation_id, client_id="1")


def beat_response(correlation_id: int = 1) -> bytes:
    response = heartbeaten.BrokerHeartbeatResponse(
        throttle_time=i32Timedelta(timedelta()),
        error_code=ErrorCode.none,
        is_caught_up=True,
        is_fenced=False,
        should_shut_down=False,
    )
    return response_frame(response, correlation_id)


def plain_request(correlation_id: int, *, api_key: int = 3, size: int = 20) -> bytes:
    """A request that nobody looks into: a Metadata by default, its body nonsense."""
    body = struct.pack(">hhih", api_key, 9, correlation_id, 2) + b"me" + b"x" * size
    return struct.pack(">i", len(body)) + body


def plain_response(correlation_id: int, *, size: int = 20) -> bytes:
    return struct.pack(">ii", size + 4, correlation_id) + b"y" * size


def response_frame(response: Any, correlation_id: int) -> bytes:
    body = io.BytesIO()
    header = response.__header_schema__
    entity_writer(header)(body, header(correlation_id=i32(correlation_id)))
    entity_writer(type(response))(body, response)
    return struct.pack(">i", body.tell()) + body.getvalue()


def example(kind: Any) -> Any:
    """An instance of a class of kio's, with one item in each list of entities."""
    hints = get_type_hints(kind)
    return kind(
        **{
            one.name: one.default
            if one.default is not MISSING and "tuple" not in str(hints[one.name])
            else _example_value(hints[one.name])
            for one in fields(kind)
        }
    )


def _nested(hint: Any) -> Any:
    parts = [part for part in get_args(hint) if part not in (type(None), Ellipsis)]
    if get_origin(hint) is tuple or (parts and hint is not tuple and not isinstance(hint, type)):
        return _nested(parts[0])
    return hint


def _example_value(hint: Any) -> Any:
    kind = _nested(hint)
    if "tuple" in str(hint):
        return (example(kind) if is_dataclass(kind) else _plain(kind),)
    if type(None) in get_args(hint):
        return None
    if is_dataclass(kind):
        return example(kind)
    if kind is ErrorCode:
        return ErrorCode.none
    return _plain(kind)


def _plain(kind: Any) -> Any:
    if issubclass(kind, datetime):
        return datetime.fromtimestamp(0, UTC)
    plains = (bool, int, float, str, bytes, timedelta, UUID)
    plain = next(one for one in plains if issubclass(kind, one))
    return TOPIC_ID if plain is UUID else plain()
