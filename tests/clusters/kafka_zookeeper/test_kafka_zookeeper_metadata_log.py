"""Changes of znodes are told as the records that KRaft has for them."""

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from stored_files import creation, made, setting, write_log, write_snapshot

from fencepost.clusters.data_tree.transactions import (
    Change,
    CloseSessionTxn,
    DeleteTxn,
    ErrorTxn,
    Transaction,
)
from fencepost.clusters.data_tree.tree import DataTree
from fencepost.clusters.kafka_zookeeper.log_runs import runs_that_count
from fencepost.clusters.kafka_zookeeper.metadata_log import (
    MetadataChanges,
    metadata_rows,
    write_metadata_log,
)
from fencepost.clusters.witness.witness import WitnessReport
from fencepost.history.cluster_schema import METADATA_LOG

STATE = "/brokers/topics/t/partitions/0/state"
EPOCH = 1 << 32


def content(**fields: Any) -> bytes:
    return json.dumps(fields).encode()


def topic(replicas: list[int], **fields: Any) -> bytes:
    return content(partitions={"0": replicas}, topic_id="A" * 22, version=3, **fields)


def state(leader: int, leader_epoch: int, *isr: int) -> bytes:
    told = {"controller_epoch": 1, "leader": leader, "version": 1, "leader_epoch": leader_epoch}
    return content(**told, isr=list(isr))


def rows(*transactions: Transaction) -> list[dict[str, Any]]:
    changes = MetadataChanges("zookeeper-1")
    return [row for one in transactions for row in changes.of(one)]


def of_types(*transactions: Transaction) -> list[tuple[str, int]]:
    return [(row["type"], row["metadata_offset"]) for row in rows(*transactions)]


def broker(zxid: int, broker_id: int, *, session: int) -> Transaction:
    """Made empty and then filled, as Kafka does."""
    path = f"/brokers/ids/{broker_id}"
    return made(
        zxid,
        creation(path, owner=session),
        setting(path, content(version=5), 1),
        session=session,
    )


def picked(row: Mapping[str, Any], *names: str) -> tuple[Any, ...]:
    return tuple(row[name] for name in names)


def test_a_broker_lives_from_the_zxid_of_its_znode_on_until_its_session_ends() -> None:
    closed = made(9, ("closeSession", CloseSessionTxn(paths=None)), session=70)
    other = made(8, ("closeSession", CloseSessionTxn(paths=())), session=71)
    registered, unfenced, fenced = rows(broker(5, 1, session=70), other, closed)
    assert picked(registered, "type", "broker_id", "broker_epoch", "fenced") == (
        *("RegisterBrokerRecord", 1, 5, True),
    )
    assert picked(unfenced, "type", "broker_epoch", "fenced") == ("UnfenceBrokerRecord", 5, False)
    assert picked(fenced, "type", "broker_id", "fenced", "metadata_offset") == (
        *("FenceBrokerRecord", 1, True, 9),
    )


def test_a_znode_that_was_taken_over_outlives_the_session_that_made_it_first() -> None:
    path = "/brokers/ids/1"
    again = made(6, ("delete", DeleteTxn(path=path)), creation(path, owner=71), session=71)
    closed = made(9, ("closeSession", CloseSessionTxn(paths=())), session=70)
    assert of_types(broker(5, 1, session=70), again, closed)[2:] == [
        ("FenceBrokerRecord", 6),
        ("RegisterBrokerRecord", 6),
        ("UnfenceBrokerRecord", 6),
    ]


def test_the_version_of_a_state_is_its_partition_epoch() -> None:
    created, first, shrunk, led = rows(
        made(5, creation("/brokers/topics/t", data=topic([1, 2]))),
        made(6, creation(STATE, data=state(1, 0, 1, 2))),
        made(7, setting(STATE, state(1, 0, 1), 1)),
        made(8, setting(STATE, state(2, 1, 2), 2)),
    )
    assert picked(created, "type", "topic", "topic_id") == ("TopicRecord", "t", "A" * 22)
    names = ("type", "topic_id", "isr", "leader", "leader_epoch", "partition_epoch", "replicas")
    assert picked(first, *names) == ("PartitionRecord", "A" * 22, [1, 2], 1, 0, 0, [1, 2])
    change = ("PartitionChangeRecord", "A" * 22)
    assert picked(shrunk, *names) == (*change, [1], None, 0, 1, [1, 2])
    assert picked(led, *names) == (*change, [2], 2, 1, 2, [1, 2])


def test_a_leader_that_only_gets_a_new_epoch_is_named_and_one_that_is_none_is_minus_one() -> None:
    *_, again, gone = rows(
        made(5, creation("/brokers/topics/t", data=topic([1, 2]))),
        made(6, creation(STATE, data=state(1, 0, 1, 2))),
        made(7, setting(STATE, state(1, 1, 1), 1)),
        made(8, setting(STATE, state(-2, 2, 1), 2)),
    )
    assert picked(again, "leader", "leader_epoch") == (1, 1)
    assert picked(gone, "leader", "leader_epoch") == (-1, 2)


def test_a_reassignment_is_told_at_once_and_with_the_next_change_of_the_state() -> None:
    moving = topic([1, 2, 3], adding_replicas={"0": [3]}, removing_replicas={"0": [1]})
    found = rows(
        made(5, creation("/brokers/topics/t", data=topic([1, 2]))),
        made(6, creation(STATE, data=state(1, 0, 1, 2))),
        made(7, setting("/brokers/topics/t", moving, 1)),
        made(8, setting(STATE, state(1, 1, 1, 2), 1)),
    )
    assert [row["type"] for row in found[2:]] == ["ReassignmentRecord", "PartitionChangeRecord"]
    for row in found[2:]:
        assert picked(row, "replicas", "adding", "removing") == ([1, 2, 3], [3], [1])
    assert picked(found[2], "topic_id", "partition", "metadata_offset") == (
        *picked(found[1], "topic_id", "partition"),
        7,
    )


def test_a_topic_that_grows_or_gets_other_content_is_not_reassigned() -> None:
    more = {"partitions": {"0": [1, 2], "1": [2, 1]}, "topic_id": "an id", "version": 3}
    found = rows(
        made(5, creation("/brokers/topics/t", data=content(partitions={"0": [1, 2]}, version=1))),
        made(6, creation(STATE, data=state(1, 0, 1, 2))),
        made(7, setting("/brokers/topics/t", content(**more), 1)),
    )
    assert [row["type"] for row in found] == ["TopicRecord", "PartitionRecord"]


def test_a_topic_without_an_id_goes_by_the_zxid_that_made_it() -> None:
    bare = content(partitions={"0": [1]}, version=1)
    found = rows(
        made(0x15, creation("/brokers/topics/t", data=bare)),
        made(0x16, creation(STATE, data=state(1, 0, 1))),
        made(
            0x17, ("delete", DeleteTxn(path=STATE)), ("delete", DeleteTxn(path="/brokers/topics/t"))
        ),
        made(0x18, creation("/brokers/topics/t", data=bare)),
        made(0x19, creation(STATE, data=state(1, 0, 1))),
    )
    assert [picked(row, "type", "topic_id") for row in found] == [
        ("TopicRecord", "0x15"),
        ("PartitionRecord", "0x15"),
        ("RemoveTopicRecord", "0x15"),
        ("TopicRecord", "0x18"),
        ("PartitionRecord", "0x18"),
    ]


def test_a_deletion_is_decided_before_the_topic_goes() -> None:
    found = rows(
        made(5, creation("/brokers/topics/t", data=topic([1]))),
        made(6, creation("/admin/delete_topics/t")),
        made(7, ("delete", DeleteTxn(path="/brokers/topics/t"))),
        made(7, ("delete", DeleteTxn(path="/admin/delete_topics/t"))),
    )
    assert [picked(row, "type", "topic", "metadata_offset") for row in found] == [
        ("TopicRecord", "t", 5),
        ("TopicDeletionRecord", "t", 6),
        ("RemoveTopicRecord", "t", 7),
    ]


def test_an_election_is_the_change_of_the_controller_epoch() -> None:
    elected = made(
        6,
        creation("/controller", data=content(brokerid=2), owner=7),
        setting("/controller_epoch", b"1", 1),
    )
    apart = made(8, setting("/controller_epoch", b"2", 2))
    found = rows(
        made(5, creation("/controller_epoch", data=b"0")),
        elected,
        made(7, ("delete", DeleteTxn(path="/controller")), creation("/controller", data=b"{}")),
        made(7, setting("/controller", content(brokerid=3), 1)),
        apart,
    )
    names = ("type", "leader", "controller_epoch", "control", "metadata_offset")
    assert [picked(row, *names) for row in found] == [
        ("LeaderChangeMessage", 2, 1, True, 6),
        ("LeaderChangeMessage", 3, 2, True, 8),
    ]


def test_rows_of_one_transaction_share_epoch_zxid_and_digest() -> None:
    both = made(
        6,
        creation("/controller", data=content(brokerid=1), owner=7),
        creation("/brokers/ids/1", owner=7),
        setting("/controller_epoch", b"4", 1),
    )
    found = [picked(row, "metadata_offset", "controller_epoch", "digest") for row in rows(both)]
    assert found == [(6, 4, both.digest)] * 3


def test_each_setting_that_changed_is_a_row() -> None:
    path = "/config/topics/t"
    found = rows(
        made(5, creation(path, data=content(version=1, config={"a": "1", "b": "2"}))),
        made(6, setting(path, content(version=1, config={"b": "3"}), 1)),
        made(7, creation("/config/brokers/<default>", data=content(config={"c": "4"}))),
        made(8, creation("/config/brokers/2", data=content(config={"c": "5"}))),
    )
    names = ("metadata_offset", "name", "value")
    assert [(*picked(row, *names), row.get("topic"), row.get("broker_id")) for row in found] == [
        (5, "a", "1", "t", None),
        (5, "b", "2", "t", None),
        (6, "a", None, "t", None),
        (6, "b", "3", "t", None),
        (7, "c", "4", None, None),
        (8, "c", "5", None, 2),
    ]


def test_what_was_refused_or_is_no_metadata_changes_nothing() -> None:
    refused: tuple[tuple[str, Change], ...] = (
        creation("/brokers/ids/1", owner=7),
        ("error", ErrorTxn(error=-110)),
    )
    elsewhere = made(6, creation("/brokers/topics/t/partitions"), creation("/admin"))
    odd = made(7, creation("/brokers/topics/t", data=b"[1]"), creation(STATE, data=b"\xff{"))
    assert of_types(made(5, *refused), elsewhere) == []
    assert of_types(odd) == [("TopicRecord", 7)]


def write_disk(data: Path, *transactions: Transaction, snapshot: DataTree | None = None) -> None:
    write_log(data, *transactions)
    if snapshot is not None:
        write_snapshot(data, snapshot)


def whole_log() -> list[Transaction]:
    return [
        made(EPOCH + 1, creation("/brokers"), creation("/brokers/ids")),
        made(EPOCH + 2, creation("/brokers/topics")),
        made(EPOCH + 3, creation("/brokers/topics/t", data=topic([1, 2]))),
        made(EPOCH + 4, creation("/brokers/topics/t/partitions")),
        made(EPOCH + 5, creation("/brokers/topics/t/partitions/0")),
        made(EPOCH + 6, creation(STATE, data=state(1, 0, 1, 2))),
        made(EPOCH + 7, setting(STATE, state(1, 0, 1), 1)),
        made(2 * EPOCH + 1, setting(STATE, state(1, 0, 1, 2), 2)),
    ]


def told(data: Path) -> tuple[list[tuple[Any, ...]], tuple[str, ...]]:
    report = WitnessReport()
    runs = runs_that_count({"zookeeper-1": [data / "version-2"]})["zookeeper-1"]
    found = list(metadata_rows("zookeeper-1", runs, report=report))
    pa.Table.from_pylist(found, schema=METADATA_LOG)
    names = ("type", "snapshot", "metadata_offset")
    return [picked(row, *names) for row in found], report.damaged


def test_a_log_from_the_beginning_is_the_whole_story(tmp_path: Path) -> None:
    log = whole_log()
    write_disk(tmp_path, *log[:4])
    write_disk(tmp_path, *log[4:], snapshot=DataTree())
    assert told(tmp_path) == (
        [
            ("TopicRecord", False, EPOCH + 3),
            ("PartitionRecord", False, EPOCH + 6),
            ("PartitionChangeRecord", False, EPOCH + 7),
            ("PartitionChangeRecord", False, 2 * EPOCH + 1),
        ],
        (),
    )


def test_behind_a_gap_the_story_begins_with_the_snapshot_that_filled_it(tmp_path: Path) -> None:
    log, tree = whole_log(), DataTree()
    for one in log[:6]:
        tree.apply(one)
    write_disk(tmp_path, *log[:3])
    write_disk(tmp_path, *log[6:], snapshot=tree)
    assert told(tmp_path) == (
        [
            ("TopicRecord", True, EPOCH + 6),
            ("PartitionRecord", True, EPOCH + 6),
            ("PartitionChangeRecord", False, EPOCH + 7),
            ("PartitionChangeRecord", False, 2 * EPOCH + 1),
        ],
        (),
    )


def test_what_a_server_had_before_a_gap_counts_as_far_as_it_is_known_to_be_decided(
    tmp_path: Path,
) -> None:
    """Each lost its disk once; one of them had logged what was undone then."""
    log, trees = whole_log(), {}
    tree = DataTree()
    for one in log:
        tree.apply(one)
        trees[one.zxid - EPOCH] = deepcopy(tree)
    first, second = tmp_path / "1", tmp_path / "2"
    undone = made(EPOCH + 8, setting(STATE, state(1, 0, 2), 2))
    write_disk(first / "kept" / "1", *log[:3], snapshot=DataTree())
    (first / "kept" / "1" / "version-2").rename(first / "kept" / "0001")
    (first / "kept" / "1").rmdir()
    write_disk(first / "data", *log[4:], snapshot=trees[4])
    write_disk(second / "kept" / "1", *log[:7], undone, snapshot=DataTree())
    (second / "kept" / "1" / "version-2").rename(second / "kept" / "0001")
    (second / "kept" / "1").rmdir()
    write_disk(second / "data", log[7], snapshot=trees[7])
    servers = ("zookeeper-1", first), ("zookeeper-2", second)
    write_metadata_log(
        {node: place / "data" for node, place in servers},
        kept={node: place / "kept" for node, place in servers},
        raw=tmp_path,
        report=WitnessReport(),
    )
    found = pq.read_table(tmp_path / "metadata_log.parquet").to_pylist()
    names = ("snapshot", "metadata_offset")
    of_nodes = [
        [picked(row, *names) for row in found if row["node"] == node] for node, _ in servers
    ]
    created, led, shrunk = EPOCH + 3, EPOCH + 6, EPOCH + 7
    at_4, last = EPOCH + 4, 2 * EPOCH + 1
    assert of_nodes[0] == [
        (False, created),
        (True, at_4),
        (False, led),
        (False, shrunk),
        (False, last),
    ]
    assert of_nodes[1] == [
        (False, created),
        (False, led),
        (False, shrunk),
        (True, shrunk),
        (True, shrunk),
        (False, last),
    ]


def test_a_log_that_begins_in_the_middle_without_a_snapshot_is_a_damage(tmp_path: Path) -> None:
    write_disk(tmp_path, *whole_log()[6:])
    found, (damage,) = told(tmp_path)
    assert found == []
    assert damage == (
        "zookeeper-1: transaction logs: the logs begin at 0x100000007, and no snapshot goes before "
        "that"
    )


def test_a_damaged_log_is_said_and_what_precedes_it_is_kept(tmp_path: Path) -> None:
    write_disk(tmp_path, *whole_log())
    (path,) = (tmp_path / "version-2").glob("log.*")
    path.write_bytes(path.read_bytes().replace(b'"isr": [1]', b'"isr": [3]'))
    raw, report = tmp_path / "raw", WitnessReport()
    write_metadata_log({"zookeeper-1": tmp_path}, raw=raw, report=report)
    assert pq.read_table(raw / "metadata_log.parquet")["type"].to_pylist() == [
        "TopicRecord",
        "PartitionRecord",
    ]
    assert report.metadata_record_counts == {"zookeeper-1": 2}
    (sentence,) = report.damaged
    assert "has the checksum" in sentence
