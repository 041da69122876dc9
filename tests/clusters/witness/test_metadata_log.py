"""A node's metadata log as rows: which records, from where, and what is missing."""

import hashlib
from pathlib import Path
from typing import Any

import pytest
from disks import (
    CONTROL,
    TIME_MS,
    TOPIC_ID,
    batch,
    change_record,
    no_op,
    segment,
    snapshot,
    topic_record,
)

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.metadata_records import Definitions
from fencepost.clusters.witness.metadata_log import METADATA_DIRECTORY, read_metadata_log
from fencepost.history.cluster_schema import METADATA_LOG

NODE = NodeName("broker-1")


def read(data: Path, definitions: Definitions) -> tuple[list[dict[str, Any]], list[str]]:
    pieces = list(read_metadata_log(NODE, data, definitions=definitions))
    assert all(piece.rows.schema.equals(METADATA_LOG) for piece in pieces)
    rows = [row for piece in pieces for row in piece.rows.to_pylist()]
    return rows, [damage for piece in pieces for damage in piece.damages]


def offsets_of(rows: list[dict[str, Any]]) -> list[tuple[bool, int]]:
    return [(row["snapshot"], row["metadata_offset"]) for row in rows]


def test_a_record_is_a_row_with_all_that_is_known_of_it(
    tmp_path: Path, definitions: Definitions
) -> None:
    shrink = change_record(3, isr=[2, 1], leader=2)
    segment(
        tmp_path / METADATA_DIRECTORY,
        0,
        batch([topic_record("t"), shrink], base_offset=0, leader_epoch=4),
    )
    [topic, change], damages = read(tmp_path, definitions)
    assert damages == []
    assert {name: topic[name] for name in ("type", "type_key", "topic", "topic_id")} == {
        "type": "TopicRecord",
        "type_key": 2,
        "topic": "t",
        "topic_id": TOPIC_ID,
    }
    assert {name: value for name, value in change.items() if value is not None} == {
        "node": "broker-1",
        "snapshot": False,
        "metadata_offset": 1,
        "controller_epoch": 4,
        "timestamp_ms": TIME_MS + 1,
        "type": "PartitionChangeRecord",
        "type_key": 5,
        "version": 0,
        "control": False,
        "digest": int.from_bytes(hashlib.sha256(shrink).digest()[:8], signed=True),
        "topic": "t",
        "topic_id": TOPIC_ID,
        "partition": 3,
        "isr": [2, 1],
        "leader": 2,
        "detail": f'partitionId=3 topicId="{TOPIC_ID}" isr=[2,1] leader=2',
    }


def test_what_a_change_leaves_alone_is_null(tmp_path: Path, definitions: Definitions) -> None:
    segment(tmp_path / METADATA_DIRECTORY, 0, batch([change_record(0, isr=[1])], base_offset=0))
    [change], _ = read(tmp_path, definitions)
    assert (change["isr"], change["leader"], change["leader_recovery_state"]) == ([1], None, None)
    # The topic was named before this log begins.
    assert (change["topic"], change["topic_id"]) == (None, TOPIC_ID)


def test_an_unknown_record_is_kept_as_it_lies(tmp_path: Path, definitions: Definitions) -> None:
    segment(
        tmp_path / METADATA_DIRECTORY,
        0,
        batch([b"\x01\x63\x07new", None], base_offset=0),
        batch([b"voters"], base_offset=2, attributes=CONTROL, key=b"\x00\x00\x00\x06"),
    )
    rows, damages = read(tmp_path, definitions)
    assert damages == []
    assert [(row["type"], row["type_key"], row["version"], row["control"]) for row in rows] == [
        ("unknown", 99, 7, False),
        ("unknown", -1, -1, False),
        ("unknown", 6, -1, True),
    ]
    assert [row["raw"] for row in rows] == [b"\x01\x63\x07new", None, b"voters"]


def test_a_log_from_the_beginning_needs_no_snapshot(
    tmp_path: Path, definitions: Definitions
) -> None:
    log = tmp_path / METADATA_DIRECTORY
    segment(log, 0, batch([topic_record("t"), no_op(), no_op()], base_offset=0))
    snapshot(log, 2, 1, topic_record("t"))
    rows, damages = read(tmp_path, definitions)
    assert offsets_of(rows) == [(False, 0), (False, 1), (False, 2)]
    assert damages == []


def test_a_log_that_begins_later_begins_with_the_snapshot_it_goes_on_from(
    tmp_path: Path, definitions: Definitions
) -> None:
    log = tmp_path / METADATA_DIRECTORY
    segment(log, 5, batch([no_op(), no_op(), change_record(0, isr=[1])], base_offset=5))
    for end_offset in (3, 6, 8):
        snapshot(log, end_offset, 1, topic_record("t"))
    rows, damages = read(tmp_path, definitions)
    # The snapshot at 3 leaves a gap, the one at 8 hides a part of the log.
    assert offsets_of(rows) == [(True, 5)] * 3 + [(False, 6), (False, 7)]
    assert [row["type"] for row in rows[:3]] == [
        "SnapshotHeaderRecord",
        "TopicRecord",
        "SnapshotFooterRecord",
    ]
    assert rows[-1]["topic"] == "t"
    assert damages == []


def test_a_snapshot_at_0_holds_the_first_voters(tmp_path: Path, definitions: Definitions) -> None:
    log = tmp_path / METADATA_DIRECTORY
    segment(log, 0, batch([no_op()], base_offset=0))
    snapshot(log, 0, 0, no_op())
    rows, damages = read(tmp_path, definitions)
    assert offsets_of(rows) == [(True, -1)] * 3 + [(False, 0)]
    assert damages == []


@pytest.mark.parametrize("kind", ["torn", "without its footer", "changed"])
def test_a_snapshot_that_is_not_whole_is_passed_over(
    tmp_path: Path, definitions: Definitions, kind: str
) -> None:
    log = tmp_path / METADATA_DIRECTORY
    segment(log, 5, batch([no_op()] * 5, base_offset=5))
    bad = snapshot(log, 6, 1, topic_record("t"))
    content = bytearray(bad.read_bytes())
    if kind == "changed":
        content[-1] ^= 1
    bad.write_bytes(content[: {"torn": -1, "without its footer": -72}.get(kind, len(content))])
    snapshot(log, 9, 1, topic_record("t"))
    rows, [damage] = read(tmp_path, definitions)
    assert offsets_of(rows) == [(True, 8)] * 3 + [(False, 9)]
    assert damage.startswith(bad.name)


def test_a_log_that_begins_later_without_a_snapshot_is_a_damage(
    tmp_path: Path, definitions: Definitions
) -> None:
    segment(tmp_path / METADATA_DIRECTORY, 5, batch([no_op()], base_offset=5))
    rows, damages = read(tmp_path, definitions)
    assert offsets_of(rows) == [(False, 5)]
    assert damages == ["the log begins at offset 5 and no snapshot goes before it"]


def test_a_node_without_a_log_is_a_damage(tmp_path: Path, definitions: Definitions) -> None:
    for data in (tmp_path, tmp_path / "wiped"):
        rows, [damage] = read(data, definitions)
        assert rows == []
        assert damage.startswith("no metadata log: there is no segment in ")


def test_a_torn_tail_is_a_damage_and_what_lies_before_it_is_read(
    tmp_path: Path, definitions: Definitions
) -> None:
    whole = batch([no_op()], base_offset=0) + batch([no_op()], base_offset=1)
    segment(tmp_path / METADATA_DIRECTORY, 0, whole[:-3])
    rows, [damage] = read(tmp_path, definitions)
    assert offsets_of(rows) == [(False, 0)]
    assert "ends within a batch of" in damage
