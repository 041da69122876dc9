"""Each table of an RPC names what Kafka's messages have, and columns that the tape has."""

from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_args, get_type_hints

import pytest
from kio.schema.index import api_key_map, schema_name_map

from fencepost.clusters.protocol.api_keys import KEYS
from fencepost.clusters.protocol.defined_entities import defined_versions
from fencepost.clusters.protocol.entities import request_type, response_type
from fencepost.clusters.protocol.rpc import (
    ITSELF,
    ByTopic,
    Entry,
    InLog,
    Inside,
    RpcField,
    RpcTable,
    Structures,
)
from fencepost.clusters.protocol.rpcs.every import EVERY_RPC
from fencepost.history.cluster_schema import WIRE

RPCS = {one.name: one for one in EVERY_RPC}


def entity_types(rpc: RpcTable, *, asks: bool) -> list[Any]:
    """The classes of the request or the response, of all versions."""
    key = KEYS[rpc.name]
    versions = {*schema_name_map.get(api_key_map.get(key, ""), ()), *defined_versions(key)}
    return [(request_type if asks else response_type)(key, version) for version in versions]


def structure(hint: Any) -> Any:
    """The structure that a hint is about, or None."""
    if is_dataclass(hint):
        return hint
    parts = [structure(one) for one in get_args(hint)] if get_args(hint) else []
    return next((one for one in parts if one is not None), None)


def below(kinds: Iterable[Any], at: str) -> list[Any]:
    """The structures that lie at one place."""
    hints = [get_type_hints(kind).get(at) for kind in kinds]
    return [found for hint in hints if (found := structure(hint)) is not None]


def absent(entries: Iterable[Entry], kinds: list[Any]) -> Iterator[str]:
    """Yield the places that no version has."""
    known = {one.name for kind in kinds for one in fields(kind)}
    for one in entries:
        if isinstance(one, RpcField | Inside | InLog) and one.at not in (ITSELF, *known):
            yield one.at
        if isinstance(one, Inside):
            yield from absent(one.fields, below(kinds, one.at))
        elif isinstance(one, InLog):
            yield from absent(one.fields, below(below(kinds, one.at), "partitions"))
        elif isinstance(one, RpcField) and isinstance(one.way, Structures):
            yield from absent(one.way.fields, below(kinds, one.at))
        elif isinstance(one, RpcField) and isinstance(one.way, ByTopic):
            topics = below(kinds, one.at)
            yield from absent(one.way.topic, topics)
            yield from absent(one.way.fields, below(topics, one.way.within))


def columns(entries: Iterable[Entry]) -> Iterator[str]:
    """Yield the columns that a table names."""
    for one in entries:
        if isinstance(one, RpcField) and isinstance(one.column, str):
            yield one.column
        if isinstance(one, Inside | InLog):
            yield from columns(one.fields)
        elif isinstance(one, RpcField) and isinstance(one.way, Structures | ByTopic):
            yield from columns(one.way.fields)


@pytest.mark.parametrize("name", list(RPCS))
def test_each_place_is_in_some_version_of_the_message(name: str) -> None:
    rpc = RPCS[name]
    assert not [*absent(rpc.asks, entity_types(rpc, asks=True))]
    assert not [*absent(rpc.answers, entity_types(rpc, asks=False))]


@pytest.mark.parametrize("name", list(RPCS))
def test_each_column_is_one_of_the_tape(name: str) -> None:
    told = {*columns(RPCS[name].asks), *columns(RPCS[name].answers)}
    assert told
    assert told <= set(WIRE.names)


def test_a_place_that_no_version_has_is_found() -> None:
    kinds = entity_types(RPCS["AlterPartition"], asks=True)
    inner = ByTopic((), "partitions", (RpcField("x", "leader_epoch"), RpcField("y", "leaderepoch")))
    assert [*absent((RpcField("items", "topics", inner),), kinds)] == ["leaderepoch"]
