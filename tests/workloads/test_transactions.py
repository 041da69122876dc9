"""Which clients a transactions workload has, and what each is told."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.client_library import ClientLibrary
from fencepost.workloads.clients.config import ClientConfig, ConsumerConfig
from fencepost.workloads.clients.java_consumer import JavaConsumerConfig
from fencepost.workloads.clients.java_gateway import JavaProgram
from fencepost.workloads.clients.transactional_config import TransactorConfig, read_as, write_as
from fencepost.workloads.transactions import TransactionsPlan
from fencepost.workloads.transactions_spec import TransactionsSpec

JAVA = JavaProgram(executable="java", class_path="a.jar")
KEYS = ("t-0", "t-1", "t-2")


def plan(
    spec: TransactionsSpec, *, java: JavaProgram | None = None, root: Path = Path("/run")
) -> TransactionsPlan:
    return TransactionsPlan(
        spec=spec,
        bootstrap_servers="b:1",
        keys=KEYS,
        run=RunDirectory(root),
        origin_ns=5,
        seed=7,
        java=java,
    )


def common_of(config: Any) -> ClientConfig:
    found = config.consumer if isinstance(config, JavaConsumerConfig) else config
    assert isinstance(found.common, ClientConfig)
    return found.common


def test_no_two_logical_clients_have_one_number_over_all_generations() -> None:
    spec = TransactionsSpec(
        producers=3, consumers=2, readers=(ClientLibrary.LIBRDKAFKA, ClientLibrary.JAVA), takes=5
    )
    made = plan(spec, java=JAVA)
    intakes = [producer.intake for producer in made.producers()]
    readers = made.final_readers(KEYS, deadline_ns=1)
    clients = [common_of(one) for one in (*made.producers(), *made.consumers(), *readers)]
    numbers = [client.process_of(generation) for client in clients for generation in range(4)]
    assert len(clients) == 7
    numbers += [
        intake.process + generation * clients[0].process_stride
        for intake in intakes
        for generation in range(4)
        if intake is not None
    ]
    assert len(numbers) == 4 * (7 + 3)
    assert len(set(numbers)) == len(numbers)


def test_what_is_taken_in_is_committed_and_a_group_is_that_of_a_transactional_id() -> None:
    spec = TransactionsSpec(producers=3, transactional_ids=2, takes=5)
    intakes = [producer.intake for producer in plan(spec).producers()]
    assert [intake.group for intake in intakes if intake is not None] == [
        "fencepost-0-intake",
        "fencepost-1-intake",
        "fencepost-0-intake",
    ]
    for intake in intakes:
        assert intake is not None
        assert intake.settings["isolation.level"] == "read_committed"
        assert intake.settings["enable.auto.commit"] == "false"
    assert [producer.intake for producer in plan(TransactionsSpec()).producers()] == [None, None]


def test_every_reader_is_at_read_committed() -> None:
    made = plan(TransactionsSpec(consumers=2))
    readers = [*made.consumers(), *made.final_readers(KEYS, deadline_ns=1)]
    assert {common_of(reader).settings["isolation.level"] for reader in readers} == {
        "read_committed"
    }


def test_consumers_are_of_the_libraries_in_turn_and_each_in_its_own_words() -> None:
    spec = TransactionsSpec(consumers=3, readers=(ClientLibrary.LIBRDKAFKA, ClientLibrary.JAVA))
    one, two, three = plan(spec, java=JAVA).consumers()
    assert isinstance(one, ConsumerConfig)
    assert isinstance(two, JavaConsumerConfig)
    assert isinstance(three, ConsumerConfig)
    assert two.java == JAVA
    assert "value.deserializer" in two.consumer.common.settings
    assert "value.deserializer" not in one.common.settings
    assert two.consumer.common.settings["isolation.level"] == "read_committed"
    # The producers of this one are librdkafka's all the same.
    assert {producer.java for producer in plan(spec, java=JAVA).producers()} == {None}


def test_a_java_consumer_reads_back_what_was_written_for_it(tmp_path: Path) -> None:
    spec = TransactionsSpec(readers=(ClientLibrary.JAVA,))
    (config,) = plan(spec, java=JAVA).consumers()
    assert isinstance(config, JavaConsumerConfig)
    write_as(JavaConsumerConfig, tmp_path / "c.json", config)
    assert read_as(JavaConsumerConfig, tmp_path / "c.json") == config


def test_only_the_keys_that_are_asked_for_are_read_back_each_once() -> None:
    shares = [
        reader.share
        for reader in plan(TransactionsSpec()).final_readers(("t-2", "t-0"), deadline_ns=1)
    ]
    assert sorted(index for share in shares for index in share) == [0, 2]
    assert plan(TransactionsSpec()).final_readers((), deadline_ns=1) == ()


def test_the_time_outs_stand_in_the_words_of_either_client() -> None:
    spec = TransactionsSpec(
        request_timeout_ms=3100, delivery_timeout_ms=4200, settings={"linger.ms": "9"}
    )
    ours = plan(spec).producers()[0].common.settings
    theirs = (
        plan(replace(spec, client=ClientLibrary.JAVA), java=JAVA).producers()[0].common.settings
    )
    assert (ours["socket.timeout.ms"], ours["message.timeout.ms"]) == ("3100", "4200")
    assert (theirs["request.timeout.ms"], theirs["delivery.timeout.ms"]) == ("3100", "4200")
    assert ours["linger.ms"] == theirs["linger.ms"] == "9"
    assert "socket.timeout.ms" not in theirs


def test_a_producer_reads_back_what_was_written_for_it(tmp_path: Path) -> None:
    spec = TransactionsSpec(transactions=3, client=ClientLibrary.JAVA)
    config = plan(spec, java=JAVA).producers()[1]
    assert config.java == JAVA
    write_as(TransactorConfig, tmp_path / "p.json", config)
    assert read_as(TransactorConfig, tmp_path / "p.json") == config
    assert (config.transactional_id, config.transaction_count_max) == ("fencepost-1", 3)


def test_every_transaction_has_had_its_time_out_and_the_interval_of_the_coordinator() -> None:
    watch = plan(TransactionsSpec(transaction_timeout_ms=20_000)).watch(now_ns=100, deadline_ns=9)
    assert watch.due_ns - 100 >= (20_000 + 10_000) * 1_000_000
