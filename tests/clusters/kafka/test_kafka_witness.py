"""What the witness reads on the disks of real clusters is what Kafka's own tool reads there."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from dump_log_segments import Dump, DumpedRecord, DumpTool, find_dump_tool

from fencepost.clusters.hosts.command import run_command
from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.formatting import new_id
from fencepost.clusters.kafka.launch import tool_command
from fencepost.clusters.kafka.prepared import KafkaPrepared
from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.message_decoder import default_of
from fencepost.clusters.protocol.metadata_records import DecodedRecord, Definitions
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.clusters.witness.definitions import definitions_of
from fencepost.clusters.witness.live import log_end_offset, topic_names
from fencepost.clusters.witness.metadata_log import METADATA_DIRECTORY, decoded
from fencepost.clusters.witness.segments import BatchRun, read_batches_file
from fencepost.clusters.witness.witness import WitnessReport, write_witness

pytestmark = pytest.mark.kafka

CONTROLLER, ONE, TWO = NodeName("controller-1"), NodeName("broker-1"), NodeName("broker-2")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SENT = 200
METADATA = "--cluster-metadata-decoder"
CONTROL_NAMES = {
    "LeaderChange": 2,
    "SnapshotHeader": 3,
    "SnapshotFooter": 4,
    "KRaftVersion": 5,
    "KRaftVoters": 6,
}

Until = Callable[..., bool]
RunCluster = Callable[..., AbstractContextManager[KafkaCluster]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Disks:
    """The disks of a cluster that has stopped, one broker of it by kill -9."""

    data: dict[NodeName, Path]
    definitions: Definitions
    tool: DumpTool
    ends_while_it_ran: dict[str, int | None]
    topics_while_it_ran: dict[str, str]

    def logs(self, name: str) -> list[Path]:
        """All segments of one partition, on whatever node."""
        return [log for data in self.data.values() for log in sorted((data / name).glob("*.log"))]


@pytest.fixture(scope="module", params=["3.4.1", "4.3.1"])
def disks(
    request: pytest.FixtureRequest,
    run_cluster: RunCluster,
    prepared: Callable[[KafkaSpec], KafkaPrepared],
    until: Until,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Disks]:
    settings = {
        "replica.lag.time.max.ms": "1500",
        "transaction.state.log.min.isr": "1",
        # A snapshot now and then, though the log is short.
        "metadata.log.max.record.bytes.between.snapshots": "3000",
    }
    spec = KafkaSpec(brokers=2, release=request.param, settings=settings)
    ready = prepared(spec)
    definitions = definitions_of(ready.release.jars)
    with Warden(run_id="test") as warden:
        with run_cluster(spec, leaves=True) as cluster:
            live_through_faults(cluster, until)
            data = {node: cluster.data_of(node) for node in cluster.nodes}
            ends = {key: log_end_offset(data[ONE], key) for key in ("t-0", "t-1", "u-v-0")}
            topics = dict(topic_names(data[CONTROLLER], definitions))
            # With one replica in sync a send is acknowledged before the other has it.
            assert until(lambda: all(ends[key] == log_end_offset(data[TWO], key) for key in ends))
            cluster.kill_node(TWO)
        work = tmp_path_factory.mktemp("dumps")
        yield Disks(
            data=data,
            definitions=definitions,
            tool=find_dump_tool(ready, warden=warden, work=work),
            ends_while_it_ran=ends,
            topics_while_it_ran=topics,
        )


def live_through_faults(cluster: KafkaCluster, until: Until) -> None:
    topics = (
        TopicSpec(name="t", assignment=((1, 2), (2, 1)), settings={"min.insync.replicas": "1"}),
        TopicSpec(name="u-v", assignment=((1, 2),)),
    )
    cluster.create_topics(topics)
    for codec in CODECS:
        send(cluster, **{"compression.type": codec})
    send(cluster, ending="commit")
    send(cluster, ending="abort")
    cluster.kill_node(TWO)
    assert until(lambda: cluster.view().partitions["t-0"].isr == (1,))
    send(cluster, **{"linger.ms": 0})
    cluster.start_node(TWO)
    assert until(lambda: set(cluster.view().partitions["t-0"].isr) == {1, 2}, timeout_s=60)
    assert until(lambda: set(cluster.view().partitions["t-1"].isr) == {1, 2}, timeout_s=60)
    send(cluster)


def send(cluster: KafkaCluster, *, ending: str | None = None, **options: Any) -> None:
    """SENT records to both partitions of t, some with key and headers; text, for a dump to show."""
    if ending is not None:
        # On a busy machine the default minute passes, and the coordinator aborts by itself.
        options |= {"transactional.id": ending, "transaction.timeout.ms": 600_000}
    producer = producer_of(cluster, **options)
    if ending is not None:
        producer.init_transactions(60)
        producer.begin_transaction()
    for number in range(SENT):
        more = {"key": b"k", "headers": [("h1", b"x"), ("h2", None)]} if number % 7 == 0 else {}
        producer.produce("t", f"{number:08}-and-more", partition=number % 2, **more)
    assert producer.flush(60) == 0
    if ending == "commit":
        producer.commit_transaction(60)
    if ending == "abort":
        producer.abort_transaction(60)
    if ending is not None:
        # The producer hears of the end before its markers are written, and a coordinator that dies
        # between the two has its successor write them again. The next producer of this id is let in
        # once the end is complete.
        producer_of(cluster, **options).init_transactions(60)


def producer_of(cluster: KafkaCluster, **options: Any) -> Producer:
    return Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "log_level": 0,
            "acks": "all",
            "enable.idempotence": True,
            **options,
        }
    )


def pieces_of(file: Path) -> list[BatchRun]:
    pieces = list(read_batches_file(file, piece_bytes=4096))
    assert [piece.damage for piece in pieces if piece.damage is not None] == []
    return pieces


def assert_same_batches(file: Path, dump: Dump) -> None:
    ours = [
        {
            "baseOffset": batch.base_offset,
            "lastOffset": batch.last_offset,
            "count": batch.record_count,
            "baseSequence": batch.base_sequence,
            "producerId": batch.producer_id,
            "producerEpoch": batch.producer_epoch,
            "partitionLeaderEpoch": batch.leader_epoch,
            "isTransactional": str(batch.transactional).lower(),
            "isControl": str(batch.control).lower(),
            "CreateTime": batch.max_timestamp_ms,
            "size": batch.size_bytes,
            "magic": batch.magic,
            "compresscodec": batch.compression.name.lower(),
            "crc": batch.crc,
            "isvalid": "true",
        }
        for piece in pieces_of(file)
        for batch in piece.batches
    ]
    assert [{name: theirs[name].lower() for name in ours[0]} for theirs in dump.batches] == [
        {name: str(value) for name, value in one.items()} for one in ours
    ]


def assert_same_records(file: Path, dump: Dump) -> None:
    ours = [
        (
            *(int(records.offsets[index]), int(records.timestamps_ms[index])),
            *(size_of(records.key(index)), size_of(records.value(index))),
            tuple(name.decode() for name, _ in records.headers(index)),
        )
        for piece in pieces_of(file)
        for records in [piece.records]
        for index in range(len(records))
    ]
    assert ours == [
        (one.offset, one.time_ms, one.key_size, one.value_size, one.header_keys)
        for one in dump.records
    ]


def size_of(part: bytes | None) -> int:
    return -1 if part is None else len(part)


def metadata_of(file: Path, definitions: Definitions) -> list[DecodedRecord]:
    return [
        decoded(piece, index, definitions)
        for piece in pieces_of(file)
        for index in range(len(piece.records))
    ]


def assert_same_metadata(
    ours: DecodedRecord, theirs: DumpedRecord, definitions: Definitions
) -> None:
    assert ours.known, ours
    if ours.control:
        assert_same_control(ours, theirs)
        return
    payload = theirs.payload
    assert re.sub(r"(?<!^)(?=[A-Z])", "_", ours.type).upper() == payload["type"]
    assert ours.version == payload["version"]
    # The tool leaves out tagged fields that have their default.
    message = definitions._by_key[ours.type_key]
    tagged = {
        field.name: default_of(field, ours.version)
        for field in message.fields
        if ours.version in field.versions and ours.version in field.tagged
    }
    assert ours.fields == {**tagged, **payload["data"]}


def assert_same_control(ours: DecodedRecord, theirs: DumpedRecord) -> None:
    # Old releases print the type alone.
    if found := re.fullmatch(r"controlType: \w+\((\d+)\)", theirs.rest):
        assert ours.type_key == int(found[1])
        return
    name, _, data = theirs.rest.partition(" ")
    assert ours.type_key == CONTROL_NAMES[name.removesuffix(":")], theirs.rest
    assert ours.fields == json.loads(data)


def assert_same_metadata_file(disks: Disks, file: Path) -> set[str]:
    """The types of its records."""
    dump = disks.tool.dump(file, METADATA)
    assert_same_batches(file, dump)
    assert_same_records(file, dump)
    ours = metadata_of(file, disks.definitions)
    assert len(ours) == len(dump.records)
    for one, theirs in zip(ours, dump.records, strict=True):
        assert_same_metadata(one, theirs, disks.definitions)
    return {one.type for one in ours}


def test_metadata_logs_are_read_as_kafkas_own_tool_reads_them(disks: Disks) -> None:
    logs = disks.logs(METADATA_DIRECTORY)
    assert len(logs) == 3
    for log in logs:
        assert assert_same_metadata_file(disks, log) >= {
            "RegisterBrokerRecord",
            "TopicRecord",
            "PartitionRecord",
            "PartitionChangeRecord",
            "ConfigRecord",
        }


def test_snapshots_are_read_as_kafkas_own_tool_reads_them(disks: Disks) -> None:
    snapshots = [
        *sorted((disks.data[ONE] / METADATA_DIRECTORY).glob("*.checkpoint")),
        disks.data[CONTROLLER] / "bootstrap.checkpoint",
    ]
    assert len(snapshots) > 1
    for snapshot in snapshots:
        assert assert_same_metadata_file(disks, snapshot)


def test_data_logs_are_read_as_kafkas_own_tool_reads_them(disks: Disks) -> None:
    seen = set()
    for log in (*disks.logs("t-0"), *disks.logs("t-1")):
        dump = disks.tool.dump(log, "--print-data-log")
        assert_same_batches(log, dump)
        assert_same_records(log, dump)
        assert len(dump.records) == len(CODECS) * SENT // 2 + 2 * (SENT // 2 + 1) + 2 * (SENT // 2)
        seen |= {batch["compresscodec"].lower() for batch in dump.batches}
        values = [
            (records.value(index) or b"").decode()
            for piece in pieces_of(log)
            for records in [piece.records]
            for index in range(len(records))
            if not records.batches[records.batch_index[index]].control
        ]
        theirs = [one for one in dump.records if "endTxnMarker" not in one.rest]
        assert values == [one.rest.partition("payload: ")[2] for one in theirs]
    assert seen == set(CODECS)


def test_the_tables_agree_with_kafkas_own_tool(disks: Disks, tmp_path: Path) -> None:
    report = witnessed(disks, tmp_path)
    assert report.unknown_type_counts == {}
    assert [damage for damage in report.damages if damage.node != TWO] == []
    log = pq.read_table(tmp_path / "metadata_log.parquet").to_pylist()
    for node in disks.data:
        rows = [row for row in log if row["node"] == node]
        assert [row["metadata_offset"] for row in rows] == list(range(len(rows)))
    # What a node lacks at its end it had not fetched when it went; all else is the same.
    by_offset: dict[int, set[Any]] = {}
    for row in log:
        by_offset.setdefault(row["metadata_offset"], set()).add((row["type"], row["digest"]))
    assert {len(found) for found in by_offset.values()} == {1}
    shrunk = [row for row in log if row["type"] == "PartitionChangeRecord" and row["isr"] == [1]]
    assert {row["topic"] for row in shrunk} >= {"t", "u-v"}


def test_replicas_have_all_records_and_markers(disks: Disks, tmp_path: Path) -> None:
    witnessed(disks, tmp_path)
    replicas = {
        (row["key"], row["node"]): row
        for row in pq.read_table(tmp_path / "replicas.parquet").to_pylist()
    }
    assert set(replicas) == {(key, node) for key in ("t-0", "t-1", "u-v-0") for node in (ONE, TWO)}
    topic_ids = {name: topic_id for topic_id, name in disks.topics_while_it_ran.items()}
    tables = [pq.read_table(file) for file in sorted((tmp_path / "replica_records").iterdir())]
    rows = [row for table in tables for row in table.to_pylist()]
    for key in ("t-0", "t-1"):
        here, there = replicas[key, ONE], replicas[key, TWO]
        assert here["topic_id"] == there["topic_id"] == topic_ids["t"]
        assert here["log_end_offset"] == here["record_count"] == disks.ends_while_it_ran[key]
        assert here["high_watermark"] == here["log_end_offset"]
        assert here["leader_epochs"][0] == {"leader_epoch": 0, "start_offset": 0}
        of_key = [row for row in rows if row["key"] == key]
        logs = [
            [
                (row["offset"], row["leader_epoch"], row["value"], row["digest"])
                for row in of_key
                if row["node"] == node
            ]
            for node in (ONE, TWO)
        ]
        assert logs[0] == logs[1]
        mine = [row for row in of_key if row["node"] == ONE]
        assert [row["committed"] for row in mine if row["control"]] == [True, False]
        assert {row["value"] for row in mine} == {None} | {
            int.from_bytes(f"{number:08}".encode(), "little")
            for number in range(int(key[-1]), SENT, 2)
        }


def test_a_running_cluster_tells_its_log_ends_and_topics(disks: Disks) -> None:
    assert disks.ends_while_it_ran["u-v-0"] == 0
    assert disks.ends_while_it_ran["t-0"] == 902
    assert set(disks.topics_while_it_ran.values()) == {"t", "u-v", "__transaction_state"}


def witnessed(disks: Disks, raw: Path) -> WitnessReport:
    return write_witness(disks.data, topics={"t", "u-v"}, definitions=disks.definitions, raw=raw)


def test_the_first_voters_of_a_dynamic_quorum_are_read(
    tmp_path: Path, prepared: Callable[[KafkaSpec], KafkaPrepared], warden: Warden
) -> None:
    ready = prepared(KafkaSpec(release="4.3.1"))
    config = tmp_path / "server.properties"
    config.write_text(
        "process.roles=controller\nnode.id=7\ncontroller.listener.names=CONTROLLER\n"
        "listeners=CONTROLLER://127.0.0.1:9093\ncontroller.quorum.bootstrap.servers="
        f"127.0.0.1:9093\nlog.dirs={tmp_path}/data\n"
    )
    arguments = ("format", "--standalone", "--cluster-id", new_id(), "--config", str(config))
    command = tool_command(
        "kafka.tools.StorageTool", arguments, java=ready.java, release=ready.release
    )
    done = run_command(command, warden=warden, name="format", directory=tmp_path, timeout_s=120)
    assert done.exit_code == 0, done.output
    [snapshot] = (tmp_path / "data" / METADATA_DIRECTORY).glob("*.checkpoint")
    definitions = definitions_of(ready.release.jars)
    ours = metadata_of(snapshot, definitions)
    assert [record.type for record in ours] == [
        "SnapshotHeaderRecord",
        "KRaftVersionRecord",
        "VotersRecord",
        "SnapshotFooterRecord",
    ]
    assert [voter["voterId"] for voter in ours[2].fields["voters"]] == [7]
    dump = find_dump_tool(ready, warden=warden, work=tmp_path).dump(snapshot, METADATA)
    for one, theirs in zip(ours, dump.records, strict=True):
        assert_same_metadata(one, theirs, definitions)
