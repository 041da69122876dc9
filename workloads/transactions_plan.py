"""The clients of a transactions workload, and the configuration of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from history.run_directory import RunDirectory
from workloads.client_plan import FINAL_READERS_MAX
from workloads.clients.config import ClientConfig, ConsumerConfig, FinalReaderConfig
from workloads.clients.java_consumer import JavaConsumerConfig
from workloads.clients.java_gateway import JavaProgram
from workloads.clients.transactional_config import IntakeConfig, OffsetsConfig, TransactorConfig
from workloads.librdkafka import FAST_FAILOVER, consumer_settings, final_reader_settings
from workloads.transactional_settings import (
    java_consumer_settings,
    java_producer_settings,
    librdkafka_transaction_settings,
)
from workloads.transactions_spec import Client, TransactionsSpec

__all__ = ["WATCH", "TransactionsPlan"]

WATCH: Final = "offsets-watch"
"""The name of the client that watches stable offsets."""
_ISOLATION: Final = "read_committed"
_CLEANUP_MS: Final = 10_000
"""Kafka's `transaction.abort.timed.out.transaction.cleanup.interval.ms`: its coordinators look that
often for transactions that have timed out."""
_ABORT_MS: Final = 3000
"""The time for such an abort to be written everywhere."""


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
            client=WATCH,
            raw=str(self.run.raw.resolve()),
            origin_ns=self.origin_ns,
            keys=self.keys,
            settings={**FAST_FAILOVER, "bootstrap.servers": self.bootstrap_servers},
            due_ns=now_ns + patience_ms * 1_000_000,
            deadline_ns=deadline_ns,
            result=str(self.run.clients / f"{WATCH}.result.json"),
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
        by_java = self.spec.reader(index) is Client.JAVA
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
            java=self.java if spec.client is Client.JAVA else None,
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
        first = self.spec.producers + self.spec.consumers + FINAL_READERS_MAX
        return IntakeConfig(
            group=f"{self.spec.transactional_id(index)}-intake",
            process=first + index,
            records_max=self.spec.takes,
            settings=settings,
        )

    def _settings(self) -> dict[str, str]:
        spec = self.spec
        if spec.client is Client.LIBRDKAFKA:
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
            process_stride=2 * self.spec.producers + self.spec.consumers + FINAL_READERS_MAX,
            raw=str(self.run.raw.resolve()),
            origin_ns=self.origin_ns,
            keys=self.keys,
            settings=settings,
            seed=self.seed,
        )
