"""The content of ZooKeeper's messages as columns of the table `wire`; a multi has items."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from clusters.link_protocol import LinkProtocol
from clusters.protocol.jute import JuteReader
from nemesis.wire.frames import Header
from nemesis.wire.rules import Direction
from nemesis.wire.zookeeper.messages import NAMES, protocol_of, type_of
from nemesis.wire.zookeeper.records import (
    Items,
    answer_columns,
    changes,
    error_name,
    operation,
)

__all__ = ["content"]

Content = tuple[Mapping[str, Any], Items]

_LENGTH_BYTES: Final = 4
_EVENTS: Final = {
    -1: "None",
    1: "NodeCreated",
    2: "NodeDeleted",
    3: "NodeDataChanged",
    4: "NodeChildrenChanged",
    5: "DataWatchRemoved",
    6: "ChildWatchRemoved",
}
_STATES: Final = ("looking", "following", "leading", "observing")
_EPOCH_SHIFT: Final = 32
_OF_EPOCHS: Final = ("FOLLOWERINFO", "OBSERVERINFO", "LEADERINFO", "NEWLEADER")


def content(header: Header, direction: Direction, data: bytes) -> Content:
    """Return the columns and items of a whole message; raise JuteError."""
    name = NAMES.get(header.api_key, "")
    match protocol_of(name):
        case LinkProtocol.ZOOKEEPER_QUORUM:
            return _packet(name, data)
        case LinkProtocol.ZOOKEEPER_ELECTION:
            return _election(name, data)
        case _ if direction is Direction.REQUEST:
            return _request(name, header, data)
        case _:
            return _answer(name, header, data)


def _request(name: str, header: Header, data: bytes) -> Content:
    reader = JuteReader(data, _LENGTH_BYTES)
    if name == "createSession":
        reader.i32()
        seen, timeout_ms = reader.i64(), reader.i32()
        return {"zxid": seen, "detail": f"timeout {timeout_ms} ms"}, []
    reader.skip(2 * _LENGTH_BYTES)
    return _told(name, operation(type_of(header.api_key), reader))


def _answer(name: str, header: Header, data: bytes) -> Content:
    reader = JuteReader(data, _LENGTH_BYTES)
    if name == "createSession":
        reader.i32()
        timeout_ms, session = reader.i32(), reader.i64()
        error = "NONE" if timeout_ms > 0 else "SESSIONEXPIRED"
        said = f"session 0x{session & (1 << 64) - 1:x}, timeout {timeout_ms} ms"
        return {"error": error, "detail": said}, []
    reader.i32()
    zxid, code = reader.i64(), reader.i32()
    if name == "WatcherEvent":
        kind, _ = reader.i32(), reader.i32()
        return {"path": reader.text(), "detail": _EVENTS.get(kind, str(kind))}, []
    columns = {"zxid": zxid, "error": error_name(code)}
    if code and reader.ended:
        return columns, []
    own, items = _told(name, answer_columns(type_of(header.api_key), reader))
    return {**columns, **own}, items


def _packet(name: str, data: bytes) -> Content:
    if name == "TREE":
        return {}, []
    reader = JuteReader(data)
    reader.i32()
    zxid = reader.i64()
    columns: dict[str, Any] = {"zxid": zxid}
    if name in _OF_EPOCHS:
        columns["leader_epoch"] = zxid >> _EPOCH_SHIFT
    said = reader.buffer()
    if not said:
        return columns, []
    if name in _TRANSACTIONS:
        own, items = _told("", changes(said))
    elif name in _PACKETS:
        own, items = _PACKETS[name](JuteReader(said))
    else:
        return columns, []
    return {**columns, **own}, items


def _forwarded(reader: JuteReader) -> Content:
    reader.skip(8 + 4)
    return _told("", operation(reader.i32(), reader))


def _learner(reader: JuteReader) -> Content:
    return {"broker_id": reader.i64()}, []


def _accepted(reader: JuteReader) -> Content:
    epoch = reader.i32()
    return {"detail": "epoch accepted before" if epoch < 0 else f"current epoch {epoch}"}, []


def _session(reader: JuteReader) -> Content:
    return {"detail": f"session 0x{reader.i64() & (1 << 64) - 1:x}"}, []


_TRANSACTIONS: Final = ("PROPOSAL", "INFORM")
_PACKETS: Final[Mapping[str, Callable[[JuteReader], Content]]] = {
    "REQUEST": _forwarded,
    "FOLLOWERINFO": _learner,
    "OBSERVERINFO": _learner,
    "ACKEPOCH": _accepted,
    "REVALIDATE": _session,
}


def _election(name: str, data: bytes) -> Content:
    if name == "InitialMessage":
        first = JuteReader(data).i64()
        return {"broker_id": JuteReader(data, 8).i64() if first < 0 else first}, []
    reader = JuteReader(data, _LENGTH_BYTES)
    state, leader, zxid, election_round = (
        reader.i32(),
        reader.i64(),
        reader.i64(),
        reader.i64(),
    )
    said = _STATES[state] if 0 <= state < len(_STATES) else f"state {state}"
    columns = {
        "leader_id": leader if abs(leader) < 1 << 31 else -1,
        "zxid": zxid,
        "detail": f"{said}, round {election_round}",
    }
    return columns if reader.ended else columns | {"leader_epoch": reader.i64()}, []


def _told(name: str, items: Items) -> Content:
    """Return one operation as columns of its own, several as items."""
    if len(items) != 1:
        return {}, items
    (only,) = items
    return {key: value for key, value in only.items() if (key, value) != ("detail", name)}, []
