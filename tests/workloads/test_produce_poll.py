"""Real clients on a real cluster: what is recorded is what happened, whoever is killed."""

import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from confluent_kafka import Consumer, TopicPartition
from sealed_runs import sealed_table

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka_port import Role, role_of
from fencepost.clusters.witness.segments import read_log
from fencepost.history.counts import live_counts
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.clients.config import ProducerConfig, read_config, write_config
from fencepost.workloads.clients.places import places_of
from fencepost.workloads.produce_poll import ProducePoll
from fencepost.workloads.produce_poll_spec import Consume, ProducePollSpec

pytestmark = pytest.mark.kafka

Make = Callable[[ProducePollSpec], tuple[ProducePoll, RunDirectory]]
Log = dict[tuple[str, int], int]
"""Value by key and offset."""
WAIT_S = 90.0


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {WAIT_S:.0f} s: {what}"
        time.sleep(0.05)


def log_of(cluster: KafkaCluster, keys: tuple[str, ...]) -> Log:
    """What a plain consumer finds, from the first to the last offset of each key."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": "plain",
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": "false",
        }
    )
    log: Log = {}
    for key, place in zip(keys, places_of(keys), strict=True):
        _, end = consumer.get_watermark_offsets(TopicPartition(*place), 10)
        consumer.assign([TopicPartition(*place, 0)])
        offset = 0
        while offset < end:
            for message in consumer.consume(min(10_000, end - offset), 10):
                assert message.error() is None, message.error()
                payload, found = message.value(), message.offset()
                assert payload is not None
                assert found is not None
                log[key, found] = int.from_bytes(payload[:8], "little", signed=True)
                offset = found + 1
    consumer.close()
    return log


@dataclass(frozen=True)
class History:
    """A sealed history as data frames."""

    operations: pd.DataFrame
    records: pd.DataFrame

    @staticmethod
    def of(run: RunDirectory) -> "History":
        return History(
            sealed_table(run, "operations").to_pandas(), sealed_table(run, "records").to_pandas()
        )

    def of_f(self, f: str) -> pd.DataFrame:
        return self.records[self.records["f"] == f]

    def sends(self, outcome: str) -> pd.DataFrame:
        sends = self.of_f("send")
        return sends[sends["outcome"] == outcome]

    def polls_in_order(self) -> pd.DataFrame:
        return self.of_f("poll").sort_values(["process", "operation", "position"])


def placed(records: pd.DataFrame) -> Log:
    rows = zip(records["key"], records["offset"], records["value"], strict=True)
    return {(key, int(offset)): int(value) for key, offset, value in rows}


def assert_true_to(history: History, log: Log, cluster: KafkaCluster) -> None:
    """Nothing in the history contradicts the log, and nothing in the log was never sent."""
    sends = history.of_f("send")
    values = set(log.values())
    assert sends["value"].is_unique
    assert values <= set(sends["value"])
    assert_only_clients_repeated(log, cluster)
    located = history.sends("ok").dropna(subset=["offset"])
    assert placed(located).items() <= log.items()
    assert set(history.sends("ok")["value"]) <= values
    assert values.isdisjoint(history.sends("fail")["value"])
    polled = history.polls_in_order()
    assert placed(polled).items() <= log.items()
    steps = polled.groupby(["process", "key", "session"])["offset"].diff().dropna()
    assert (steps == 1).all()
    assert placed(history.of_f("final-read")) == log


def assert_only_clients_repeated(log: Log, cluster: KafkaCluster) -> None:
    """Each copy of a value stands in a producer epoch of its own.

    librdkafka begins another epoch when a batch is out of sequence, and sends again what is open;
    no broker can know those records again. One that has a value twice in one epoch is at fault.
    """
    copies: dict[int, list[tuple[str, int]]] = {}
    for place, value in log.items():
        copies.setdefault(value, []).append(place)
    twice = {value: places for value, places in copies.items() if len(places) > 1}
    epochs = {
        key: epochs_in(cluster, key)
        for key in {key for places in twice.values() for key, _ in places}
    }
    for value, places in twice.items():
        own = [epochs[key][offset] for key, offset in places]
        assert len(set(own)) == len(own), f"{value} stands at {places} by {own}"


def epochs_in(cluster: KafkaCluster, key: str) -> dict[int, tuple[int, int]]:
    """Producer id and epoch of each offset, on the disk of the leader."""
    leader = cluster.view().partitions[key].leader
    assert leader is not None
    batches = [
        batch
        for piece in read_log(cluster.data_of(cluster.node_of(leader)) / key)
        for batch in piece.batches
    ]
    return {
        offset: (batch.producer_id, batch.producer_epoch)
        for batch in batches
        for offset in range(batch.base_offset, batch.last_offset + 1)
    }


def assert_read_from_the_start(read: Log, log: Log) -> None:
    """Every key, from its first offset on, and nothing left out before the last one read."""
    ends = dict.fromkeys((key for key, _ in log), -1)
    for key, offset in read:
        ends[key] = max(ends[key], offset)
    assert min(ends.values()) > 0
    assert read.keys() == {(key, offset) for key, offset in log if offset <= ends[key]}


def polled_by(workload: ProducePoll, client: str) -> int:
    return workload.counts().by_client[client].polled_records


def test_clients_that_crash_or_stand_still_leave_a_history_that_is_true(
    cluster: KafkaCluster, make_workload: Make
) -> None:
    workload, run = make_workload(ProducePollSpec(rate=2000, producers=2, consume=Consume.ASSIGN))
    workload.start()
    clients = workload.clients
    wait_until(lambda: workload.counts().ok > 2000, "2000 acknowledged sends")
    assert "every thread is stopped" in clients.pause("producer-1")
    pids = dict(workload.pids)
    for name in ("producer-0", "consumer-0"):
        assert f"{name} (pid {pids[name]}): killed" in clients.crash(name)
        assert f"goes on as {name}.1" in clients.come_back(name)
        assert workload.pids[name] != pids[name]
    stood_still = workload.counts().by_client["producer-1"].ok
    clients.resume("producer-1")
    wait_until(lambda: workload.counts().by_client["producer-1"].ok > stood_still, "its sends")
    assert workload.failures() == ()
    workload.stop(timeout_s=40)
    complete = workload.final_read(timeout_s=30)
    history, log = History.of(run), log_of(cluster, complete)
    assert_true_to(history, log, cluster)
    sends = history.operations[history.operations["f"] == "send"]
    assert sends["process"].nunique() == 3


def test_what_is_recorded_is_what_is_in_the_log(cluster: KafkaCluster, make_workload: Make) -> None:
    workload, run = make_workload(ProducePollSpec(rate=2000, reassign_s=0.5))
    workload.start()
    wait_until(lambda: workload.counts().ok > 6000, "6000 acknowledged sends")
    wait_until(lambda: polled_by(workload, "consumer-0") > 6000, "polls of the assigning consumer")
    wait_until(lambda: polled_by(workload, "consumer-1") > 6000, "polls of the group")
    workload.stop(timeout_s=40)
    complete = workload.final_read(timeout_s=30)
    assert workload.failures() == ()
    counts, history = workload.counts(), History.of(run)
    log = log_of(cluster, complete)
    assert len(complete) == 4
    assert_true_to(history, log, cluster)
    assert len(history.sends("ok")) == len(log) == counts.ok == counts.invoked
    assert set(history.operations["outcome"]) == {"ok"}
    # Every key was loaded alike, by both producers, and read by both consumers.
    per_key = history.of_f("send").groupby(["process", "key"]).size()
    assert len(per_key) == 8
    assert np.ptp(per_key.groupby("process").agg(np.ptp)) <= 1
    polled = history.polls_in_order()
    for process in (2, 3):
        assert_read_from_the_start(placed(polled[polled["process"] == process]), log)
    # The assigning consumer went back over what it had read.
    assert polled[polled["process"] == 2]["session"].max() > 0


def test_a_producer_killed_at_full_speed_loses_no_acknowledged_send(
    cluster: KafkaCluster, make_workload: Make, warden: Warden, tmp_path: Path
) -> None:
    spec = ProducePollSpec(producers=1, consumers=2, rate=0)
    workload, run = make_workload(spec)
    workload.start()
    # The producer under test: the workload's own, but each acknowledgement has a witness, too.
    config = read_config(run.clients / "producer-0.json", ProducerConfig)
    config = replace(config, common=replace(config.common, client="witnessed", process=100))
    write_config(tmp_path / "witnessed.json", config)
    witness = tmp_path / "witness"
    program = Path(__file__).with_name("witnessed_producer.py")
    pid = warden.spawn(
        [sys.executable, str(program), str(tmp_path / "witnessed.json"), str(witness)],
        name="witnessed",
        log=tmp_path / "witnessed.log",
        env={"PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )
    wait_until(lambda: seen_by(run, "witnessed") > 50_000, "50 000 acknowledged sends")
    warden.signal(workload.pids["producer-0"], signal.SIGKILL)
    warden.signal(pid, signal.SIGKILL)
    assert warden.wait(pid, timeout_s=10) == -signal.SIGKILL
    workload.stop(timeout_s=20)
    complete = workload.final_read(timeout_s=60)
    assert [failure.split()[0] for failure in workload.failures()] == ["producer-0"]
    history = History.of(run)
    assert_true_to(history, log_of(cluster, complete), cluster)
    told = witness.read_bytes()
    acknowledged = np.frombuffer(told[: len(told) // 8 * 8], dtype=np.int64)
    assert len(acknowledged) > 50_000
    assert set(acknowledged.tolist()) <= set(history.sends("ok")["value"])
    # Killed at full speed, it had sends in flight: open, which is info without an error.
    assert len(history.sends("info"))
    operations = history.operations
    assert operations[operations["outcome"] == "info"]["return_ns"].isna().all()


def seen_by(run: RunDirectory, client: str) -> int:
    found = live_counts(run.raw).by_client.get(client)
    return 0 if found is None else found.ok


def test_sends_go_on_after_the_leader_was_killed_under_load(
    cluster: KafkaCluster, make_workload: Make
) -> None:
    workload, run = make_workload(ProducePollSpec(rate=1000))
    workload.start()
    wait_until(lambda: workload.counts().ok > 1000, "1000 acknowledged sends")
    key = next(iter(workload.keys))
    leader = cluster.view().partitions[key].leader
    assert leader is not None
    node = cluster.node_of(leader)
    cluster.kill_node(node)
    wait_until(lambda: cluster.view().partitions[key].leader not in (None, leader), "a new leader")
    before = workload.counts()
    wait_until(
        lambda: (
            workload.counts().ok > before.ok + 2000
            and workload.counts().polled_records > before.polled_records + 2000
        ),
        "sends and polls go on",
    )
    cluster.start_node(node)
    brokers = sum(role_of(name) is Role.BROKER for name in cluster.nodes)
    wait_until(lambda: len(cluster.view().brokers) == brokers, "the broker is back")
    workload.stop(timeout_s=40)
    complete = workload.final_read(timeout_s=40)
    assert workload.failures() == ()
    assert len(complete) == 4
    history = History.of(run)
    assert_true_to(history, log_of(cluster, complete), cluster)
    # Whatever did not end ok says why.
    ended_badly = history.operations[history.operations["outcome"] != "ok"]
    assert ended_badly["error"].notna().all()


def test_a_consumer_that_leaves_its_group_leaves_its_keys_to_the_others(
    cluster: KafkaCluster, make_workload: Make, warden: Warden
) -> None:
    workload, run = make_workload(ProducePollSpec(rate=1000, consume=Consume.SUBSCRIBE))
    workload.start()
    wait_until(lambda: polled_by(workload, "consumer-0") > 500, "consumer-0 has keys")
    wait_until(lambda: polled_by(workload, "consumer-1") > 500, "consumer-1 has keys")
    warden.signal(workload.pids["consumer-1"], signal.SIGTERM)
    assert warden.wait(workload.pids["consumer-1"], timeout_s=20) == 0
    seen = polled_by(workload, "consumer-0")
    wait_until(
        lambda: polled_by(workload, "consumer-0") > seen + 4000,
        "consumer-0 polls what both had",
    )
    workload.stop(timeout_s=40)
    complete = workload.final_read(timeout_s=30)
    assert workload.failures() == ()
    history = History.of(run)
    log = log_of(cluster, complete)
    assert_true_to(history, log, cluster)
    polled = history.polls_in_order()
    # Together they left nothing out: what the one had not committed, the other read again.
    assert_read_from_the_start(placed(polled), log)
    stayed = polled[polled["process"] == 2]
    assert set(stayed["key"]) == set(complete)
    # Keys that the rebalance took away and gave back are read in a new session; the first session
    # may have read nothing, if consumer-1 joined at once.
    assert stayed.groupby("key")["session"].nunique().max() > 1
