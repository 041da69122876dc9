"""The metadata workload in virtual time. See `workloads.port.Workload`.

The spec is the real one's, and so are the tables.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from clusters.reference.nodes.configuration import MS, S
from clusters.reference.simulated.cluster import SimulatedCluster
from clusters.reference.simulated.deferred import ReadBook
from history.counts import ClientCounts, Counts
from history.journal import EventJournal
from history.manifest import Promises
from history.operation import Outcome
from workloads.generators.topic_lives import TopicLives
from workloads.kind import SimulatedSetup
from workloads.metadata_spec import MetadataSpec
from workloads.simulated.clients import Clients
from workloads.simulated.metadata_reader import SimulatedMetadataReader
from workloads.simulated.metadata_writer import SimulatedWriter

__all__ = ["SimulatedMetadata", "build"]

_CLIENT: Final = "metadata-0"


class SimulatedMetadata:
    """The workload of one run; it records into `raw` and has nothing to read back."""

    def __init__(
        self,
        spec: MetadataSpec,
        cluster: SimulatedCluster,
        *,
        raw: Path,
        seed: int,
        first_process: int = 0,
    ) -> None:
        self._spec = spec
        self._cluster = cluster
        self._seed = seed
        self._first_process = first_process
        self._of_topics = EventJournal(raw, "metadata_writes", writer=_CLIENT)
        self._of_partitions = EventJournal(raw, "partition_writes", writer=_CLIENT)
        self._reads = ReadBook(raw, writer=_CLIENT)
        self._clients = Clients(cluster)
        self._writers = [self._writer(number) for number in range(spec.writers)]
        self._readers = [self._reader(number) for number in range(len(cluster.brokers))]
        self._stopped = False

    @property
    def promises(self) -> Promises:
        """Return the promises of records, of which it sends none."""
        return Promises(idempotent=False, acks="", consume="assign")

    @property
    def keys(self) -> tuple[str, ...]:
        """Return no keys: it writes to none."""
        return ()

    @property
    def pids(self) -> Mapping[str, int]:
        """Return no processes: the clients are all in this one."""
        return {}

    def start(self) -> None:
        """Start every client."""
        for number, writer in enumerate(self._writers):
            self._clients.place(f"metadata-writer-{number}", writer)
        for number, reader in enumerate(self._readers):
            self._clients.place(f"metadata-reader-{number}", reader)

    def stop(self, timeout_s: float) -> None:
        """Let what is open end within the bound. Idempotent."""
        if self._stopped:
            return
        self._stopped = True
        clients: list[SimulatedWriter | SimulatedMetadataReader]
        clients = [*self._writers, *self._readers]
        for client in clients:
            client.stop()
        self._clients.wait(clients, within_ns=int(timeout_s * S))
        self._clients.end(clients)
        self._of_topics.close()
        self._of_partitions.close()
        self._reads.close()

    def final_read(self, timeout_s: float) -> tuple[str, ...]:  # noqa: ARG002  # the port's
        """Return no keys: there is nothing to read."""
        return ()

    def counts(self) -> Counts:
        """Return the counts of the writers so far."""
        ok, fail, info = (
            sum(writer.counts[outcome] for writer in self._writers) for outcome in Outcome
        )
        mine = ClientCounts(invoked=ok + fail + info, ok=ok, fail=fail, info=info)
        return Counts(invoked=mine.invoked, ok=ok, fail=fail, info=info, by_client={_CLIENT: mine})

    def failures(self) -> tuple[str, ...]:
        """Return no failures: a client that fails ends the world."""
        return ()

    def _writer(self, number: int) -> SimulatedWriter:
        spec = self._spec
        process = self._first_process + number
        lives = TopicLives(
            slots=len(range(number, spec.topics, spec.writers)),
            first_number=number,
            stride=spec.writers,
            lives=spec.lives,
            alters=spec.alters,
            partitions=spec.partitions,
            grows=spec.grows,
            replication_factor_max=min(spec.replication_factor_max, len(self._cluster.brokers)),
            draw=np.random.default_rng([self._seed, process]),
        )
        return SimulatedWriter(
            process,
            lives,
            brokers=self._cluster.brokers,
            node_of=self._cluster.node_of,
            of_topics=self._of_topics,
            of_partitions=self._of_partitions,
            interval_ns=int(S * spec.writers / spec.write_rate),
            timeout_ns=spec.write_timeout_ms * MS,
        )

    def _reader(self, number: int) -> SimulatedMetadataReader:
        spec, brokers = self._spec, self._cluster.brokers
        return SimulatedMetadataReader(
            self._first_process + spec.writers + number,
            brokers[number],
            node=self._cluster.node_of(brokers[number]),
            names=lambda: [name for writer in self._writers for name in writer.lives.names],
            reads=self._reads,
            interval_ns=int(S * len(brokers) / spec.read_rate),
            timeout_ns=spec.read_timeout_ms * MS,
        )


def build(spec: MetadataSpec, setup: SimulatedSetup) -> SimulatedMetadata:
    """Return the workload of a run."""
    return SimulatedMetadata(
        spec,
        setup.cluster,
        raw=setup.run.raw,
        seed=setup.seed,
        first_process=setup.first_process,
    )
