"""The transactions workload, the harness's side of it.

Producers run transactions, consumers read what is committed. In the end, when every transaction
must have ended, the last stable offset of each key is compared with the end of its log: keys that
are whole are read back at read_committed, and a key that a transaction still holds up cannot be
read completely.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.prepared import PreparedKafka
from fencepost.clusters.kafka.releases import fetch_release
from fencepost.clusters.topic_spec import TopicSpec, keys_of
from fencepost.history.clock import Clock
from fencepost.history.counts import Counts
from fencepost.history.manifest import Promises
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.client_library import ClientLibrary
from fencepost.workloads.client_processes import ClientProcesses, listed
from fencepost.workloads.clients.config import ClientConfig, ConsumerConfig, FinalReaderConfig
from fencepost.workloads.clients.java_consumer import JavaConsumerConfig
from fencepost.workloads.clients.java_gateway import JavaProgram
from fencepost.workloads.clients.transactional_config import (
    IntakeConfig,
    OffsetsConfig,
    TransactorConfig,
    write_as,
)
from fencepost.workloads.kind import Setup
from fencepost.workloads.librdkafka import FAST_FAILOVER, consumer_settings, final_reader_settings
from fencepost.workloads.reading import FINAL_READERS_MAX
from fencepost.workloads.transactional_settings import (
    java_consumer_settings,
    java_producer_settings,
    librdkafka_transaction_settings,
)
from fencepost.workloads.transactions_spec import TransactionsSpec

_READ_S: Final = 20.0
"""The part of the time for final reads that is left to them after the wait for stable offsets."""
_SLACK_S: Final = 2.0
"""The time for a client to end, after it gave up."""
_WATCH: Final = "offsets-watch"
"""The name of the client that watches stable offsets."""
_ISOLATION: Final = "read_committed"
_CLEANUP_MS: Final = 10_000
"""Kafka's `transaction.abort.timed.out.transaction.cleanup.interval.ms`: its coordinators look that
often for transactions that have timed out."""
_ABORT_MS: Final = 3000
"""The time for such an abort to be written everywhere."""


class Transactions:
    """The workload of one run. See `workloads.port.Workload`.

    Raises UsageError or HarnessError if the release of a Java client cannot be had.
    """

    def __init__(
        self,
        spec: TransactionsSpec,
        *,
        warden: Warden,
        bootstrap_servers: str,
        topics: Sequence[TopicSpec],
        run: RunDirectory,
        clock: Clock,
        seed: int,
        prepared: PreparedKafka,
    ) -> None:
        self._spec = spec
        self._clock = clock
        self._processes = ClientProcesses(warden=warden, run=run)
        self._plan = TransactionsPlan(
            spec=spec,
            bootstrap_servers=bootstrap_servers,
            keys=keys_of(topics),
            run=run,
            origin_ns=clock.origin_ns,
            seed=seed,
            java=_java_program(spec, prepared, warden),
        )

    @property
    def promises(self) -> Promises:
        """Return the promises to its clients, by their configuration."""
        return self._spec.promises

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys that it writes to and reads: every key of its topics."""
        return self._plan.keys

    @property
    def clients(self) -> ClientProcesses:
        """The client processes, to be paused and crashed."""
        return self._processes

    @property
    def pids(self) -> Mapping[str, int]:
        """The client processes that were started, by name; some may have ended."""
        return self._processes.pids

    def start(self) -> None:
        """Start consumers, then producers; returns once each has recorded an operation.

        Raises HarnessError with the end of a client's log if that client does not come up.
        """
        for consumer in self._plan.consumers():
            if isinstance(consumer, ConsumerConfig):
                self._processes.spawn_configured("consumer", consumer)
            else:
                name = consumer.consumer.common.client
                write_as(JavaConsumerConfig, self._processes.config_path(name), consumer)
                self._processes.spawn("java_consumer", name)
        for producer in self._plan.producers():
            name = producer.common.client
            write_as(TransactorConfig, self._processes.config_path(name), producer)
            self._processes.spawn("transactional_producer", name)
        self._processes.await_operations()

    def stop(self, timeout_s: float) -> None:
        """End the producers, each after its transaction, then the consumers.

        Clients that are left after `timeout_s` are killed. Idempotent. A producer needs up to the
        delivery and the end time-out of the spec where no broker answers it.
        """
        self._processes.end_in_turn(timeout_s)

    def final_read(self, timeout_s: float) -> tuple[str, ...]:
        """Read every key of which all transactions have ended; return those that were read whole.

        After `stop`, once. Waits for transactions to end, as long as their time-out allows.
        """
        deadline_s = time.monotonic() + timeout_s
        settled = self._settled(deadline_s - min(_READ_S, timeout_s / 2))
        left_s = deadline_s - time.monotonic()
        deadline_ns = self._clock.now_ns() + int((left_s - _SLACK_S) * 1e9)
        readers = self._plan.final_readers(settled, deadline_ns=deadline_ns)
        complete = self._processes.read_back(readers, deadline_s=deadline_s)
        return tuple(key for key in self._plan.keys if key in complete)

    def counts(self) -> Counts:
        """Return the counts of the clients so far; a record counts once its transaction ended."""
        return self._processes.counts()

    def failures(self) -> tuple[str, ...]:
        """Return a sentence and a log tail for each client that ended unasked, or would not end."""
        return self._processes.failures()

    def _settled(self, deadline_s: float) -> tuple[str, ...]:
        """Return the keys of which every transaction has ended."""
        now_ns = self._clock.now_ns()
        left_ns = int((deadline_s - time.monotonic() - _SLACK_S) * 1e9)
        config = self._plan.watch(now_ns=now_ns, deadline_ns=now_ns + left_ns)
        write_as(OffsetsConfig, self._processes.config_path(_WATCH), config)
        self._processes.spawn("transactional_offsets", _WATCH)
        self._processes.finish([_WATCH], deadline_s=deadline_s)
        return listed(config.result, "settled")


def _java_program(
    spec: TransactionsSpec, prepared: PreparedKafka, warden: Warden
) -> JavaProgram | None:
    if not spec.needs_java:
        return None
    release = prepared.release
    if spec.client_release not in (None, release.name):
        release = fetch_release(
            str(spec.client_release), java=prepared.java, warden=warden, progress=lambda _: None
        )
    return JavaProgram(executable=str(prepared.java.executable), class_path=release.class_path)


def build(spec: TransactionsSpec, setup: Setup) -> Transactions:
    """Return the workload of a run."""
    assert isinstance(setup.prepared, PreparedKafka), "transactions are for Kafka"
    return Transactions(
        spec,
        warden=setup.warden,
        bootstrap_servers=setup.cluster.bootstrap_servers,
        topics=setup.topics,
        run=setup.run,
        clock=setup.clock,
        seed=setup.seed,
        prepared=setup.prepared,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionsPlan:
    """The way from the spec to the configurations. No logical client has the number of another."""

    spec: TransactionsSpec
    bootstrap_servers: str
    keys: tuple[str, ...]
    run: RunDirectory
    origin_ns: int
    seed: int
    java: JavaProgram | None
    """The Java for Kafka's own client."""

    def producers(self) -> tuple[TransactorConfig, ...]:
        """Return the producers: processes from 0 on."""
        return tuple(self._producer(index) for index in range(self.spec.producers))

    def consumers(self) -> tuple[ConsumerConfig | JavaConsumerConfig, ...]:
        """Return the consumers: processes from the number of producers on, each with every key."""
        return tuple(self._consumer(index) for index in range(self.spec.consumers))

    def watch(self, *, now_ns: int, deadline_ns: int) -> OffsetsConfig:
        """Return the watch of stable offsets; every producer has ended before `now_ns`."""
        patience_ms = self.spec.transaction_timeout_ms + _CLEANUP_MS + _ABORT_MS
        return OffsetsConfig(
            client=_WATCH,
            raw=str(self.run.raw.resolve()),
            origin_ns=self.origin_ns,
            keys=self.keys,
            settings={**FAST_FAILOVER, "bootstrap.servers": self.bootstrap_servers},
            due_ns=now_ns + patience_ms * 1_000_000,
            deadline_ns=deadline_ns,
            result=str(self.run.clients / f"{_WATCH}.result.json"),
        )

    def final_readers(
        self, keys: tuple[str, ...], *, deadline_ns: int
    ) -> tuple[FinalReaderConfig, ...]:
        """Return the final readers: processes after the consumers', each key with one reader."""
        shares = [self.keys.index(key) for key in keys]
        count = min(FINAL_READERS_MAX, len(shares))
        settings = final_reader_settings(bootstrap_servers=self.bootstrap_servers, settings={})
        first = self.spec.producers + self.spec.consumers
        return tuple(
            FinalReaderConfig(
                common=self._common(
                    f"final-reader-{index}",
                    process=first + index,
                    settings={**settings, "isolation.level": _ISOLATION},
                ),
                share=tuple(shares[index::count]),
                deadline_ns=deadline_ns,
                result=str(self.run.clients / f"final-reader-{index}.result.json"),
            )
            for index in range(count)
        )

    def _consumer(self, index: int) -> ConsumerConfig | JavaConsumerConfig:
        by_java = self.spec.reader(index) is ClientLibrary.JAVA
        servers = self.bootstrap_servers
        settings = (
            java_consumer_settings(bootstrap_servers=servers, isolation=_ISOLATION)
            if by_java
            else consumer_settings(bootstrap_servers=servers, isolation=_ISOLATION, settings={})
        )
        process = self.spec.producers + index
        config = ConsumerConfig(
            common=self._common(f"consumer-{index}", process=process, settings=settings),
            subscribe=False,
            reassign_s=self.spec.reassign_s,
        )
        if not by_java:
            return config
        assert self.java is not None, "a Java client without a Java"
        return JavaConsumerConfig(consumer=config, java=self.java)

    def _producer(self, index: int) -> TransactorConfig:
        spec = self.spec
        return TransactorConfig(
            common=self._common(f"producer-{index}", process=index, settings=self._settings()),
            java=self.java if spec.client is ClientLibrary.JAVA else None,
            transactional_id=spec.transactional_id(index),
            rate=spec.rate / spec.producers,
            transaction_count_max=spec.transactions,
            records_per_transaction=spec.records_per_transaction,
            stop_on_failure=spec.stop_on_failure,
            open_ms=spec.open_ms,
            pattern=spec.pattern,
            abort_share=spec.abort_share,
            value_bytes=spec.value_bytes,
            delivery_timeout_ms=spec.delivery_timeout_ms,
            end_timeout_ms=spec.end_timeout_ms,
            intake=self._intake(index) if spec.takes else None,
        )

    def _intake(self, index: int) -> IntakeConfig:
        """Return the intake's configuration; its processes follow those of the final readers."""
        settings = consumer_settings(
            bootstrap_servers=self.bootstrap_servers, isolation=_ISOLATION, settings={}
        )
        return IntakeConfig(
            group=self.spec.intake_group(index),
            process=self.spec.intake_process(index),
            records_max=self.spec.takes,
            settings=settings,
        )

    def _settings(self) -> dict[str, str]:
        spec = self.spec
        if spec.client is ClientLibrary.LIBRDKAFKA:
            return librdkafka_transaction_settings(
                bootstrap_servers=self.bootstrap_servers,
                transaction_timeout_ms=spec.transaction_timeout_ms,
                request_timeout_ms=spec.request_timeout_ms,
                delivery_timeout_ms=spec.delivery_timeout_ms,
                settings=spec.settings,
            )
        return java_producer_settings(
            bootstrap_servers=self.bootstrap_servers,
            transaction_timeout_ms=spec.transaction_timeout_ms,
            request_timeout_ms=spec.request_timeout_ms,
            delivery_timeout_ms=spec.delivery_timeout_ms,
            end_timeout_ms=spec.end_timeout_ms,
            settings=spec.settings,
        )

    def _common(self, name: str, *, process: int, settings: Mapping[str, str]) -> ClientConfig:
        return ClientConfig(
            client=name,
            process=process,
            process_stride=self.spec.process_stride,
            raw=str(self.run.raw.resolve()),
            origin_ns=self.origin_ns,
            keys=self.keys,
            settings=settings,
            seed=self.seed,
        )
