"""Real transactional clients on a real cluster: what is recorded is what happened."""

import signal
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from pydantic import TypeAdapter
from sealed_runs import sealed_table

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.cluster import KafkaCluster
from fencepost.clusters.kafka.preparation import prepare
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.clock import Clock
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.transactions import Transactions, TransactionsSpec

pytestmark = pytest.mark.kafka

Make = Callable[..., tuple[Transactions, RunDirectory]]
CLIENTS = ("librdkafka", "java")
WAIT_S = 90.0


@pytest.fixture
def make(
    request: pytest.FixtureRequest, tmp_path: Path, warden: Warden, cluster: KafkaCluster
) -> Iterator[Make]:
    """Makes a workload on a topic of two partitions; ended, whatever the test did."""
    made: list[Transactions] = []

    def of(**fields: Any) -> tuple[Transactions, RunDirectory]:
        name = request.node.name.translate(str.maketrans("_[]", "---"))
        topic = TopicSpec(name=name[-60:].strip("-"), partitions=2)
        cluster.create_topics([topic])
        run = RunDirectory.create(tmp_path, "test", datetime.now(UTC))
        workload = Transactions(
            TypeAdapter(TransactionsSpec).validate_python(fields),
            warden=warden,
            bootstrap_servers=cluster.bootstrap_servers,
            topics=[topic],
            run=run,
            clock=Clock.start(),
            seed=7,
            prepared=prepare(cluster.spec, lambda _: None),
        )
        made.append(workload)
        return workload, run

    yield of
    for workload in made:
        workload.stop(timeout_s=0)


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {WAIT_S:.0f} s: {what}"
        time.sleep(0.05)


def finished(workload: Transactions, run: RunDirectory) -> dict[str, pd.DataFrame]:
    """The sealed tables of a workload that was stopped and read back whole."""
    workload.stop(timeout_s=50)
    assert workload.final_read(timeout_s=60) == workload.keys
    names = ("transactions", "stable_offsets", "records")
    return {name: sealed_table(run, name).to_pandas() for name in names}


def values_of(records: pd.DataFrame, f: str, outcome: str = "ok") -> set[int]:
    return set(records[(records["f"] == f) & (records["outcome"] == outcome)]["value"])


@pytest.mark.parametrize("client", CLIENTS)
def test_committed_records_are_read_and_aborted_ones_are_not(make: Make, client: str) -> None:
    workload, run = make(client=client, rate=20, records_per_transaction=3)
    workload.start()
    wait_until(lambda: workload.counts().ok > 60, "20 transactions committed")
    wait_until(lambda: workload.counts().fail > 15, "5 transactions aborted")
    tables = finished(workload, run)
    assert workload.failures() == ()
    transactions, records = tables["transactions"], tables["records"]
    assert set(transactions["outcome"]) == {"ok"}
    for intent, outcome in (("commit", "ok"), ("abort", "fail")):
        written = transactions[transactions["intent"] == intent]["values"].explode()
        assert set(written) == values_of(records, "send", outcome)
    assert values_of(records, "final-read") == values_of(records, "send")
    assert values_of(records, "poll") <= values_of(records, "send")
    # Every send that was acknowledged has its offset, and it stands there.
    sent = records[(records["f"] == "send") & (records["outcome"] == "ok")]
    read = records[records["f"] == "final-read"]
    assert sent["offset"].notna().all()
    both = sent.merge(read, on=["key", "value"], how="inner")
    assert (both["offset_x"] == both["offset_y"]).all()
    stable = tables["stable_offsets"].groupby("key").last()
    assert (stable["last_stable_offset"] == stable["high_watermark"]).all()


def test_a_java_reader_and_one_of_librdkafka_read_what_is_committed_and_nothing_else(
    make: Make,
) -> None:
    workload, run = make(rate=20, consumers=2, readers=["librdkafka", "java"], reassign_s=0.5)
    workload.start()
    wait_until(lambda: workload.counts().ok > 320, "80 transactions committed, which is 6 s")
    tables = finished(workload, run)
    assert workload.failures() == ()
    records = tables["records"]
    sent, aborted = values_of(records, "send"), values_of(records, "send", "fail")
    polls = records[(records["f"] == "poll") & (records["outcome"] == "ok")]
    read = polls.groupby("process")["value"].agg(set)
    assert set(read.index) == {2, 3}
    assert aborted
    for process, values in read.items():
        assert values <= sent
        # It has every committed record up to the last one that it read; a reader that is stopped
        # while it goes back leaves out the end.
        mine = polls[polls["process"] == process].groupby("key")["offset"].max()
        committed = records[(records["f"] == "send") & (records["outcome"] == "ok")]
        up_to = committed["offset"] <= committed["key"].map(mine)
        assert set(committed[up_to]["value"]) <= values
        assert len(values) > len(sent) / 2
    # Going back over what it has read, the Java client is shown the same records there.
    own = polls[polls["process"] == 3]
    assert len(set(own["session"])) > 1
    shown = own[["key", "offset", "value"]].drop_duplicates()
    assert not shown.duplicated(["key", "offset"]).any()


@pytest.mark.parametrize("client", CLIENTS)
def test_what_a_transaction_took_in_is_taken_once_by_those_that_committed(
    make: Make, client: str
) -> None:
    workload, run = make(client=client, producers=2, rate=10, takes=5, abort_share=0.3)
    workload.start()
    wait_until(lambda: workload.counts().ok > 100, "25 transactions committed")
    wait_until(lambda: workload.counts().fail > 20, "5 transactions aborted")
    finished(workload, run)
    assert workload.failures() == ()
    rows = sealed_table(run, "group_offsets").to_pylist()
    sent = [row for row in rows if row["f"] == "send-offsets"]
    assert {row["outcome"] for row in sent} == {"ok", "fail"}
    reached: dict[tuple[str, str], int] = {}
    for row in rows:  # one instance a group: its rows are in the order in which they happened
        if row["f"] == "fetch-offsets":
            if row["outcome"] != "ok":
                continue  # a coordinator that is not there yet; a question changes nothing
            for key, offset in zip(row["keys"], row["offsets"], strict=True):
                assert offset == reached.get((row["group"], key), -1)
        elif row["outcome"] == "ok":
            taken = zip(row["keys"], row["offsets_before"], row["offsets"], strict=True)
            for key, before, after in taken:
                assert before == max(0, reached.get((row["group"], key), 0))
                assert after > before
                reached[row["group"], key] = after
    assert len({group for group, _ in reached}) == 2
    # After each abort, and at the start.
    assert sum((row["f"], row["outcome"]) == ("fetch-offsets", "ok") for row in rows) > 5


@pytest.mark.parametrize("client", CLIENTS)
def test_producers_of_one_id_fence_each_other_and_nothing_is_read_that_was_not_committed(
    make: Make, client: str
) -> None:
    workload, run = make(client=client, transactional_ids=1, rate=4, open_ms=500, abort_share=0)
    workload.start()
    wait_until(lambda: workload.counts().ok > 4, "a transaction committed")
    # A fenced transaction fails a handful of operations at most.
    wait_until(lambda: workload.counts().fail > 30, "several transactions were fenced")
    tables = finished(workload, run)
    records = tables["records"]
    # Each instance that was fenced has given way to another, under a number of its own.
    assert tables["transactions"]["process"].nunique() > 2
    indefinite = values_of(records, "send", "info")
    assert values_of(records, "final-read") - indefinite == values_of(records, "send")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_producer_killed_in_a_transaction_leaves_it_open_until_its_time_out(
    make: Make, client: str, warden: Warden
) -> None:
    workload, run = make(
        client=client,
        producers=1,
        rate=0,
        open_ms=60_000,
        request_timeout_ms=500,
        delivery_timeout_ms=1000,
        transaction_timeout_ms=1000,
    )
    workload.start()
    pid = workload.pids["producer-0"]
    wait_until(lambda: workload.counts().invoked == 2, "half a transaction was sent")
    children = psutil.Process(pid).children()
    assert len(children) == (client == "java")
    warden.signal(pid, signal.SIGKILL)
    assert warden.wait(pid, timeout_s=10) == -signal.SIGKILL
    # Its JVM ends with it.
    assert not psutil.wait_procs(children, timeout=10)[1]
    tables = finished(workload, run)
    assert tables["transactions"][["intent", "outcome"]].to_numpy().tolist() == [["commit", "info"]]
    assert tables["transactions"]["end_call_ns"].isna().all()
    assert len(values_of(tables["records"], "send", "info")) == 2
    assert not values_of(tables["records"], "final-read")
