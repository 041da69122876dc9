"""Layouts read what they wrote, keep the order of topics and items, and know what is absent."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wire_samples import image_with

from fencepost.clusters.reference.codec.api import RequestTopics
from fencepost.clusters.reference.codec.layout import (
    FLAG,
    NAME,
    NUMBERS,
    PLAIN,
    Layout,
    always,
    by_topic,
    each,
    field,
    inside,
    nullable,
    number,
    read_only,
    write_only,
)
from fencepost.clusters.reference.nodes.messages.control import AlterPartitionItem

LABELS = RequestTopics(image_with())
_words = st.text(max_size=3)


def entity(value: Any) -> Any:
    """Values as an entity has them: structures by attribute, several of them in a tuple."""
    if isinstance(value, Mapping):
        return SimpleNamespace(**{name: entity(one) for name, one in value.items()})
    return tuple(map(entity, value)) if isinstance(value, list) else value


def grouped_slowly(items: list[tuple[str, int, str]]) -> list[dict[str, Any]]:
    names: list[str] = []
    for name, *_ in items:
        if name not in names:
            names.append(name)
    return [
        {
            "name": name,
            "partitions": [
                {"index": index, "words": words or None}
                for other, index, words in items
                if other == name
            ],
        }
        for name in names
    ]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 5), _words), max_size=8))
def test_items_by_topic_keep_the_order_of_topics_and_of_items(
    items: list[tuple[str, int, str]],
) -> None:
    way = by_topic(
        (field("topic", "name"),),
        "partitions",
        field("partition", "index"),
        field("words", way=NAME),
    )
    written = way.write(tuple(items), LABELS)
    assert written == grouped_slowly(items)
    read = way.read(entity(written), LABELS)
    assert sorted(read) == sorted(items)
    assert way.write(read, LABELS) == written


def test_a_partition_without_a_structure_is_its_number() -> None:
    way = nullable(by_topic((field("topic"),), "partitions", number("partition")))
    written = way.write((("t", 0), ("u", 2), ("t", 1)), LABELS)
    assert written == [
        {"topic": "t", "partitions": [0, 1]},
        {"topic": "u", "partitions": [2]},
    ]
    assert way.read(entity(written), LABELS) == (("t", 0), ("t", 1), ("u", 2))
    assert way.read(None, LABELS) is way.write(None, LABELS) is None


def test_a_key_is_two_fields_of_a_tuple_and_of_a_dataclass() -> None:
    parts = (field("topic_id"), field("partition"), field("leader_epoch"))
    rows = Layout(*parts)
    values = {"topic_id": 7, "partition": 3, "leader_epoch": 5}
    assert rows.write(((7, 3), 5), LABELS) == values
    assert rows.read(entity(values), LABELS) == ((7, 3), 5)
    items = Layout(
        *parts, field("partition_epoch"), field("isr", way=NUMBERS), into=AlterPartitionItem
    )
    item = AlterPartitionItem((7, 3), 5, 9, (1, 2))
    written = items.write(item, LABELS)
    assert written == values | {"partition_epoch": 9, "isr": (1, 2)}
    assert items.read(entity(written), LABELS) == item


def test_parts_of_one_side_and_structures_within() -> None:
    layout = Layout(
        inside("leader", field("leader_id", "id"), field("recovering", "state", FLAG)),
        always(timeout=3),
        write_only(lambda found: {"twice": 2 * found["leader_id"]}),
        read_only("is_first", lambda _, found: found["leader_id"] == 1),
    )
    values = {"leader": {"id": 1, "state": 1}, "timeout": 3, "twice": 2}
    assert layout.write((1, True, True), LABELS) == values
    assert layout.read(entity(values), LABELS) == (1, True, True)


def test_what_a_version_lacks_has_the_value_that_stands_for_it_or_is_an_error() -> None:
    stated = Layout(field("a"), field("b", missing=-1), field("c", way=NUMBERS, missing=()))
    assert stated.read(SimpleNamespace(a=1), LABELS) == (1, -1, ())
    assert stated.read(SimpleNamespace(a=1, b=2, c=[3]), LABELS) == (1, 2, (3,))
    with pytest.raises(AttributeError, match="a"):
        stated.read(SimpleNamespace(b=2), LABELS)


@given(st.lists(_words, max_size=4).map(tuple))
def test_one_field_alone_is_the_value_itself(values: tuple[str, ...]) -> None:
    way = each(field("name", way=PLAIN))
    assert way.read(entity(way.write(values, LABELS)), LABELS) == values
