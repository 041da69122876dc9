"""The clients of a produce-poll workload, and the configuration of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.client_library import ClientLibrary
from fencepost.workloads.clients.config import (
    ClientConfig,
    ConsumerConfig,
    FinalReaderConfig,
    ProducerConfig,
)
from fencepost.workloads.librdkafka import (
    consumer_settings,
    final_reader_settings,
    producer_settings,
)
from fencepost.workloads.produce_poll_spec import ProducePollSpec
from fencepost.workloads.reading import FINAL_READERS_MAX
from fencepost.workloads.transactional_settings import java_idempotent_settings

_BATCH_BYTES_MAX: Final = 8 << 20
_IN_FLIGHT_BYTES_MAX: Final = 64 << 20
"""The bytes in flight of one producer. With values of 100 B the counts of the spec come first."""
_REQUEST_MS: Final = 6000
"""The time after which a Java producer asks again over a new connection, as librdkafka does."""
_FLUSH_SLACK_MS: Final = 2000
"""librdkafka's time-outs are looked at once a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPlan:
    """The way from the spec to the configurations.

    No logical client has the number of another, restarts and final readers included.
    """

    spec: ProducePollSpec
    bootstrap_servers: str
    keys: tuple[str, ...]
    run: RunDirectory
    origin_ns: int
    seed: int

    def producers(self) -> tuple[ProducerConfig, ...]:
        """Return the producers: processes from 0 on."""
        return tuple(self._producer(index) for index in range(self.spec.producers))

    def consumers(self) -> tuple[ConsumerConfig, ...]:
        """Return the consumers: processes from the number of producers on."""
        return tuple(self._consumer(index) for index in range(self.spec.consumers))

    def final_readers(self, *, deadline_ns: int) -> tuple[FinalReaderConfig, ...]:
        """Return the final readers: processes after the consumers'; each key is one reader's."""
        count = min(FINAL_READERS_MAX, len(self.keys))
        return tuple(self._final_reader(index, count, deadline_ns) for index in range(count))

    def _producer(self, index: int) -> ProducerConfig:
        spec = self.spec
        in_flight_max = min(spec.in_flight_max, _IN_FLIGHT_BYTES_MAX // spec.value_bytes)
        settings = self._producer_settings(in_flight_max)
        return ProducerConfig(
            common=self._common(f"producer-{index}", process=index, settings=settings),
            rate=spec.rate / spec.producers,
            value_bytes=spec.value_bytes,
            batch_max=min(spec.batch_max, _BATCH_BYTES_MAX // spec.value_bytes),
            in_flight_max=in_flight_max,
            flush_ms=spec.message_timeout_ms + _FLUSH_SLACK_MS,
        )

    def _producer_settings(self, in_flight_max: int) -> dict[str, str]:
        spec = self.spec
        if spec.client is ClientLibrary.JAVA:
            return java_idempotent_settings(
                bootstrap_servers=self.bootstrap_servers,
                linger_ms=spec.linger_ms,
                # As librdkafka's: the broker's wait for replicas ends before that for the broker.
                request_timeout_ms=min(_REQUEST_MS, spec.message_timeout_ms - spec.linger_ms),
                delivery_timeout_ms=spec.message_timeout_ms,
                settings=spec.settings,
            )
        return producer_settings(
            bootstrap_servers=self.bootstrap_servers,
            acks=spec.acks,
            idempotence=spec.idempotence,
            linger_ms=spec.linger_ms,
            message_timeout_ms=spec.message_timeout_ms,
            in_flight_max=in_flight_max,
            settings=spec.settings,
        )

    def _consumer(self, index: int) -> ConsumerConfig:
        spec = self.spec
        settings = consumer_settings(
            bootstrap_servers=self.bootstrap_servers,
            isolation=spec.isolation,
            settings=spec.consumer_settings,
        )
        process = spec.producers + index
        return ConsumerConfig(
            common=self._common(f"consumer-{index}", process=process, settings=settings),
            subscribe=spec.subscribes(index),
            reassign_s=spec.reassign_s,
        )

    def _final_reader(self, index: int, count: int, deadline_ns: int) -> FinalReaderConfig:
        name = f"final-reader-{index}"
        settings = final_reader_settings(
            bootstrap_servers=self.bootstrap_servers, settings=self.spec.consumer_settings
        )
        process = self.spec.producers + self.spec.consumers + index
        return FinalReaderConfig(
            common=self._common(name, process=process, settings=settings),
            share=tuple(range(index, len(self.keys), count)),
            deadline_ns=deadline_ns,
            result=str(self.run.clients / f"{name}.result.json"),
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
