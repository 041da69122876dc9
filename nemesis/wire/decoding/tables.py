"""The columns of the tape that follow from an RPC's table (`clusters.protocol.rpc`)."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, assert_never

from fencepost.clusters.protocol.columns import Parts, error_name, partition_items
from fencepost.clusters.protocol.rpc import (
    ByTopic,
    ByVersion,
    Converter,
    Entry,
    InLog,
    Inside,
    RpcField,
    RpcTable,
    Structures,
    Told,
    ValueKind,
)
from fencepost.nemesis.wire.error_codes import name_by_code
from fencepost.nemesis.wire.rules import Direction

_Columns = dict[str, Any]
_Items = list[Mapping[str, Any]]
_Taker = Callable[[Any, _Columns, _Items], None]
"""Adds to the columns and the items what an entity says."""
_ABSENT: Final = object()


def extractors(
    rpcs: Iterable[RpcTable],
) -> Mapping[tuple[str, Direction], Callable[[Any], Parts]]:
    """Return what makes columns and items of an entity, for both directions of each RPC."""
    found = {}
    for rpc in rpcs:
        found[rpc.name, Direction.REQUEST] = _extractor(rpc.asks)
        found[rpc.name, Direction.RESPONSE] = _extractor(rpc.answers)
    return found


def _extractor(entries: Iterable[Entry]) -> Callable[[Any], Parts]:
    taker = _all_of(entries)

    def extract(entity: Any) -> Parts:
        columns: _Columns = {}
        items: _Items = []
        taker(entity, columns, items)
        return columns, items

    return extract


def _all_of(entries: Iterable[Entry]) -> _Taker:
    takers = [found for one in entries if (found := _taker(one)) is not None]

    def take(entity: Any, columns: _Columns, items: _Items) -> None:
        for one in takers:
            one(entity, columns, items)

    return take


def _taker(entry: Entry) -> _Taker | None:
    """Return what an entry adds; None: it is not on the tape."""
    match entry:
        case RpcField():
            return _of_field(entry)
        case InLog():
            return _rows(entry.at, ByTopic((), "partitions", entry.fields))
        case Inside():
            return None
        case ByVersion():
            return _members(entry)
        case Told():
            return lambda entity, columns, _: columns.update(entry.of(entity))
    assert_never(entry)


def _of_field(entry: RpcField) -> _Taker | None:
    match entry.way:
        case ByTopic():
            return _rows(entry.at, entry.way)
        case Structures():
            return _structures(entry.at, entry.way)
        case way:
            return None if entry.column is None else _column(entry, entry.column, way)


def _column(
    entry: RpcField, column: str | Callable[[Any], Mapping[str, Any]], way: ValueKind | Converter
) -> _Taker:
    at = entry.at
    if callable(column):

        def update(entity: Any, columns: _Columns, _: _Items) -> None:
            value = getattr(entity, at, _ABSENT)
            if value is not _ABSENT:
                columns.update(column(value))

        return update
    shown = _SHOWN.get(way, _as_it_is) if isinstance(way, ValueKind) else _as_it_is

    def take(entity: Any, columns: _Columns, _: _Items) -> None:
        value = getattr(entity, at, None)
        if value is not None:
            columns[column] = value if shown is _as_it_is else shown(value)

    return take


def _members(entry: ByVersion) -> _Taker:
    def take(entity: Any, columns: _Columns, _: _Items) -> None:
        found: dict[str, Any] = {}
        entry.read(entity, found)
        columns.update({name: list(values) for name, values in found.items()})

    return take


def _rows(at: str, way: ByTopic) -> _Taker:
    inner = _all_of(way.fields)

    def take(entity: Any, _: _Columns, items: _Items) -> None:
        if way.older is not None and not hasattr(entity, at):
            partitions = way.older(entity)
        else:
            partitions = partition_items(getattr(entity, at) or (), field=way.within)
        for where, one in partitions:
            row = dict(where)
            inner(one, row, items)
            items.append(row)

    return take


def _structures(at: str, way: Structures) -> _Taker | None:
    if not any(_taker(one) for one in way.fields):
        return None
    inner = _all_of(way.fields)
    nested = any(
        isinstance(one, RpcField) and isinstance(one.way, Structures | ByTopic)
        for one in way.fields
    )

    def take(entity: Any, _: _Columns, items: _Items) -> None:
        for one in getattr(entity, at):
            row: _Columns = {}
            within: _Items = []
            inner(one, row, within)
            items.extend({**row, **item} for item in (within if nested else ({},)))

    return take


def _as_it_is(value: Any) -> Any:
    return value


_SHOWN: Final[Mapping[ValueKind, Callable[[Any], Any]]] = {
    ValueKind.NUMBERS: list,
    ValueKind.ERROR: error_name,
    ValueKind.OWN_ERROR: name_by_code,
}
