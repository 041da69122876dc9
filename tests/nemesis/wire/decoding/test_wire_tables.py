"""Columns and items follow from a table; what a version lacks is left out."""

from types import SimpleNamespace as Entity

from fencepost.clusters.protocol.rpc import (
    Inside,
    RpcField,
    RpcTable,
    Told,
    ValueKind,
    field,
    in_log,
    rows,
    structures,
)
from fencepost.clusters.protocol.rpc import taped as on_tape
from fencepost.nemesis.wire.decoding.tables import extractors
from fencepost.nemesis.wire.rules import Direction

PARTITION = rows(
    "partitions",
    "topics",
    (field("topic", "name"),),
    "partitions",
    field("partition", "partition_index"),
    on_tape("isr", way=ValueKind.NUMBERS),
)


def read(entity: Entity, *entries: object) -> tuple[dict[str, object], list[object]]:
    """Columns and items of a request with this table."""
    extract = extractors((RpcTable(name="Vote", asks=entries, answers=()),))[
        "Vote", Direction.REQUEST
    ]
    columns, items = extract(entity)
    return dict(columns), list(items)


def topic(name: str, *partitions: int) -> Entity:
    return Entity(
        name=name, partitions=[Entity(partition_index=one, isr=(1, 2)) for one in partitions]
    )


def test_a_field_is_a_column_under_its_own_name_another_or_made_of_its_value() -> None:
    table = (
        on_tape("broker_id"),
        on_tape("epoch", "leader_epoch", column="leader_epoch"),
        on_tape("granted", column=lambda value: {"detail": "granted" if value else "refused"}),
        field("host"),
        RpcField("", "voter_id", column="leader_id"),
        Told(lambda entity: {"topic": entity.host}),
    )
    entity = Entity(broker_id=1, leader_epoch=2, granted=False, host="h", voter_id=3)
    expected = {"broker_id": 1, "leader_epoch": 2, "detail": "refused"}
    assert read(entity, *table) == (expected | {"leader_id": 3, "topic": "h"}, [])


def test_what_a_version_lacks_or_leaves_empty_is_left_out() -> None:
    table = (on_tape("broker_id"), on_tape("words", column="detail"), on_tape("isr", missing=()))
    assert read(Entity(words=None), *table) == ({}, [])


def test_partitions_are_items_with_topic_and_number() -> None:
    entity = Entity(topics=[topic("t", 0, 1), topic("u"), topic("v", 2)])
    assert read(entity, PARTITION) == (
        {},
        [
            {"topic": "t", "partition": 0, "isr": [1, 2]},
            {"topic": "t", "partition": 1, "isr": [1, 2]},
            {"topic": "v", "partition": 2, "isr": [1, 2]},
        ],
    )
    assert read(Entity(topics=None), PARTITION) == ({}, [])
    log = in_log(on_tape("isr", way=ValueKind.NUMBERS))
    assert read(Entity(topics=[topic("t", 0)]), log)[1] == [
        {"topic": "t", "partition": 0, "isr": [1, 2]}
    ]


def test_a_structure_is_an_item_and_what_lies_within_it_are_items_in_its_place() -> None:
    brokers = structures("brokers", "brokers", on_tape("broker_id"))
    entity = Entity(brokers=[Entity(broker_id=1), Entity(broker_id=2)], live=[Entity(host="h")])
    assert read(entity, brokers)[1] == [{"broker_id": 1}, {"broker_id": 2}]
    assert read(entity, structures("live", "live", field("host")))[1] == []
    directories = structures(
        "directories", "directories", on_tape("id", column="detail"), PARTITION
    )
    told = Entity(directories=[Entity(id="a", topics=[topic("t", 0)]), Entity(id="b", topics=[])])
    assert read(told, directories)[1] == [
        {"detail": "a", "topic": "t", "partition": 0, "isr": [1, 2]}
    ]


def test_what_lies_inside_a_structure_is_for_the_codec_alone() -> None:
    entity = Entity(current_leader=Entity(leader_id=3))
    assert read(entity, Inside("current_leader", (field("leader_id"),))) == ({}, [])
