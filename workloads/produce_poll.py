"""The produce-poll workload, the harness's side of it.

Producers write unique values to every key, consumers read them, and in the end every key is read
back whole. Here their configurations are written, and they are started, watched and ended through
the warden. Their operations are in their segments, never in here.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Final

from fencepost.clusters.hosts.warden import Warden
from fencepost.clusters.kafka.prepared import PreparedKafka
from fencepost.clusters.topic_spec import TopicSpec, keys_of
from fencepost.history.clock import Clock
from fencepost.history.counts import Counts
from fencepost.history.manifest import Promises
from fencepost.history.run_directory import RunDirectory
from fencepost.workloads.client_library import ClientLibrary
from fencepost.workloads.client_plan import ClientPlan
from fencepost.workloads.client_processes import ClientProcesses
from fencepost.workloads.clients.java_gateway import JavaProgram
from fencepost.workloads.clients.java_producer import JavaProducerConfig
from fencepost.workloads.clients.transactional_config import write_as
from fencepost.workloads.kind import Setup
from fencepost.workloads.produce_poll_spec import ProducePollSpec

_READER_SLACK_S: Final = 2.0
"""The time for a final reader to end, after it gave up."""


class ProducePoll:
    """The workload of one run. See `workloads.port.Workload`."""

    def __init__(
        self,
        spec: ProducePollSpec,
        *,
        warden: Warden,
        bootstrap_servers: str,
        topics: Sequence[TopicSpec],
        run: RunDirectory,
        clock: Clock,
        seed: int,
        java: JavaProgram | None = None,
    ) -> None:
        self._spec = spec
        self._java = java
        self._clock = clock
        self._processes = ClientProcesses(warden=warden, run=run)
        self._plan = ClientPlan(
            spec=spec,
            bootstrap_servers=bootstrap_servers,
            keys=keys_of(topics),
            run=run,
            origin_ns=clock.origin_ns,
            seed=seed,
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
            self._processes.spawn_configured("consumer", consumer)
        for producer in self._plan.producers():
            if self._java is None:
                self._processes.spawn_configured("producer", producer)
            else:
                name = producer.common.client
                config = JavaProducerConfig(producer=producer, java=self._java)
                write_as(JavaProducerConfig, self._processes.config_path(name), config)
                self._processes.spawn("java_producer", name)
        self._processes.await_operations()

    def stop(self, timeout_s: float) -> None:
        """End the producers, then the consumers; what is left after `timeout_s` is killed.

        Idempotent. Producers need the spec's message time-out to learn the end of every send.
        """
        self._processes.end_in_turn(timeout_s)

    def final_read(self, timeout_s: float) -> tuple[str, ...]:
        """Read every key from its first to its last offset; return the keys of which this was done.

        After `stop`, once: the end of a key is only known when no producer can write to it.
        """
        deadline_s = time.monotonic() + timeout_s
        deadline_ns = self._clock.now_ns() + int((timeout_s - _READER_SLACK_S) * 1e9)
        readers = self._plan.final_readers(deadline_ns=deadline_ns)
        complete = self._processes.read_back(readers, deadline_s=deadline_s)
        return tuple(key for key in self._plan.keys if key in complete)

    def counts(self) -> Counts:
        """Return the counts of the clients so far; cheap enough to ask many times a second."""
        return self._processes.counts()

    def failures(self) -> tuple[str, ...]:
        """Return a sentence and a log tail for each client that ended unasked, or would not end."""
        return self._processes.failures()


def build(spec: ProducePollSpec, setup: Setup) -> ProducePoll:
    """Return the workload of a run."""
    java = None
    if spec.client is ClientLibrary.JAVA:
        assert isinstance(setup.prepared, PreparedKafka), "Java clients are of Kafka's releases"
        java = JavaProgram(
            executable=str(setup.prepared.java.executable),
            class_path=setup.prepared.release.class_path,
        )
    return ProducePoll(
        spec,
        warden=setup.warden,
        bootstrap_servers=setup.cluster.bootstrap_servers,
        topics=setup.topics,
        run=setup.run,
        clock=setup.clock,
        seed=setup.seed,
        java=java,
    )
