"""Other names for the same things, wherever a run tells them."""

import re
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa

from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.history.schema import TABLES

Rename = Callable[[str], str]


def nodes_renamed(run: CopiedRun, draw: Random) -> bool:
    """Give the nodes of each role other numbers; who is a broker is still called one."""
    nodes = sorted({*run.manifest.node_ids, *run.manifest.second_roles})
    add = draw.randint(10, 90)
    names = {}
    for node in nodes:
        role, _, number = node.rpartition("-")
        if number.isdecimal():
            names[node] = f"{role}-{int(number) + add}"
    if names:
        # A node's name stands in texts as well: in the listeners that a record tells, as JSON.
        either = "|".join(map(re.escape, names))
        found = re.compile(rf"(?<![\w-])(?:{either})(?![\w-])")
        _rename(run, lambda text: found.sub(lambda one: names[one[0]], text))
    return bool(names)


def topics_renamed(run: CopiedRun, draw: Random) -> bool:
    """Give the topics of the clients other names; so their keys lie in other files."""
    keys = run.manifest.keys
    topics = sorted({key.rpartition("-")[0] for key in keys})
    ending = draw.randint(100, 999)
    names = {topic: f"{topic}-{ending}" for topic in topics}
    found = {name for one in run.tables for name in _words(run.table(one))}
    for key in sorted(found | set(keys)):
        topic, _, number = key.rpartition("-")
        if topic in topics and number.isdecimal():
            names[key] = f"{names[topic]}-{number}"
    run.rename_keys(names)
    _rename(run, lambda text: names.get(text, text))
    return bool(topics)


def _words(rows: pa.Table) -> set[str]:
    """Return all keys that a table names."""
    if "key" not in rows.schema.names:
        return set()
    return set(rows["key"].unique().to_pylist()) - {None}


def _rename(run: CopiedRun, rename: Rename) -> None:
    for name in run.tables:
        run.change(name, partial(_renamed, name=name, rename=rename))
    run.rewrite_manifest(lambda content: _told(content, rename))


def _renamed(rows: pa.Table, *, name: str, rename: Rename) -> pa.Table:
    for place, field in enumerate(TABLES[name]):
        of_words = field.type == pa.string()
        of_lists = pa.types.is_list(field.type) and field.type.value_type == pa.string()
        if of_words or of_lists:
            values = [_told(one, rename) for one in rows[field.name].to_pylist()]
            rows = rows.set_column(place, rows.schema.field(place), pa.array(values, field.type))
    return rows


def _told(content: Any, rename: Rename) -> Any:
    match content:
        case str():
            return rename(content)
        case list():
            return [_told(one, rename) for one in content]
        case dict():
            return {rename(key): _told(one, rename) for key, one in content.items()}
    return content
