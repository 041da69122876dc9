"""The metadata workload in virtual time. See `workloads.port.Workload`.

The spec is the real one's, and so are the tables. A reader describes topics and their settings,
always through one broker. A read without an answer is on record, too, under what ended it: it
claims nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from fencepost.clusters.node_port.effects import NOTE, SEND, START, TICK, UNREACHABLE, Effects
from fencepost.clusters.node_port.notes import READ_BEGAN, READ_METADATA
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.configuration import MS, S
from fencepost.clusters.reference.nodes.messages.client import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    MetadataRequest,
    MetadataResponse,
)
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.reference.simulated.deferred import ReadBook, last_offset, metadata_items
from fencepost.clusters.reference.simulated.error_names import error_name
from fencepost.clusters.simulation.world import WAKE
from fencepost.history.counter import COUNTER_SETTING, counter_of
from fencepost.history.counts import ClientCounts, Counts
from fencepost.history.journal import EventJournal
from fencepost.history.manifest import Promises
from fencepost.history.operation import Outcome
from fencepost.workloads.generators.topic_lives import TopicLives
from fencepost.workloads.kind import SimulatedSetup
from fencepost.workloads.metadata_spec import MetadataSpec
from fencepost.workloads.simulated.clients import Clients
from fencepost.workloads.simulated.metadata_writer import SimulatedWriter

_CLIENT: Final = "metadata-0"
_TOPIC: Final = 2
_SILENT: Final = "REQUEST_TIMED_OUT"
_BROKEN: Final = "NETWORK_EXCEPTION"


class SimulatedMetadataReader:
    """One logical client, with one read open at a time: topics and settings by turns."""

    def __init__(
        self,
        process: int,
        broker: int,
        *,
        node: NodeName,
        names: Callable[[], Sequence[str]],
        reads: ReadBook,
        interval_ns: int,
        timeout_ns: int,
    ) -> None:
        self._process = process
        self._broker = broker
        self._node = node
        self._names = names
        self._reads = reads
        self._interval_ns = interval_ns
        self._timeout_ns = timeout_ns
        self._correlation = 0
        self._open: tuple[int, Sequence[str]] | None = None
        """The time at which the open read was called, and the names that it reads."""
        self._due_ns: int | None = None
        self._stopping = False

    @property
    def idle(self) -> bool:
        """Return whether it is told to stop, and has nothing open."""
        return self._stopping and self._open is None

    def stop(self) -> None:
        """Read no more."""
        self._stopping = True

    def give_up(self) -> None:
        """Leave out a read that is open."""

    def handle(self, now: int, _source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take an event of the world."""
        if kind in (TICK, START):
            self._tick(now, effects)
        elif self._open is None or message.correlation != self._correlation:
            return  # given up
        elif kind == MetadataResponse.kind:
            self._end(now, metadata_items(message), end_offset=message.metadata_offset)
            number = self._process << 32 | self._correlation
            offset = message.metadata_offset
            effects.append((NOTE, READ_METADATA, number, self._broker, offset))
        elif kind == DescribeConfigsResponse.kind:
            items = tuple(map(_settings_item, message.resources))
            self._end(now, items, end_offset=message.metadata_offset)
        elif kind == UNREACHABLE:
            self._fail(now, _BROKEN)

    def _tick(self, now: int, effects: Effects) -> None:
        if self._due_ns is None:
            self._due_ns = now + self._process * self._interval_ns // 7 % self._interval_ns
        if self._open is not None and now >= self._open[0] + self._timeout_ns:
            self._fail(now, _SILENT)
        if self._open is None and not self._stopping and now >= self._due_ns:
            self._read(now, effects)
            self._due_ns = max(self._due_ns + self._interval_ns, now)
        effects.append((WAKE, max(self._due_ns, now + self._interval_ns // 4)))

    def _read(self, now: int, effects: Effects) -> None:
        names = tuple(self._names())
        if not names:
            return
        self._correlation += 1
        self._open = (now, names)
        request: MetadataRequest | DescribeConfigsRequest
        if self._correlation % 2:
            request = MetadataRequest(self._correlation, tuple((name, -1) for name in names))
            number = self._process << 32 | self._correlation
            effects.append((NOTE, READ_BEGAN, number))
        else:
            wanted = tuple((_TOPIC, name, (COUNTER_SETTING,)) for name in names)
            request = DescribeConfigsRequest(self._correlation, wanted)
        effects.append((SEND, self._broker, request))

    def _fail(self, now: int, error: str) -> None:
        assert self._open is not None
        self._end(now, tuple({"topic": name, "error": error} for name in self._open[1]))

    def _end(self, now: int, items: Sequence[dict[str, Any]], *, end_offset: int = -1) -> None:
        assert self._open is not None
        call_ns, _ = self._open
        self._open = None
        self._reads.add(
            self._process,
            self._node,
            call_ns=call_ns,
            return_ns=now,
            items=items,
            metadata_offset=last_offset(end_offset),
        )


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

    def _node_of(self, number: int) -> NodeName:
        return NodeName(self._cluster.world.hosts[number].name)

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
            replication_factors=spec.replication_factors(brokers=len(self._cluster.brokers)),
            draw=np.random.default_rng([self._seed, process]),
        )
        return SimulatedWriter(
            process,
            lives,
            brokers=self._cluster.brokers,
            node_of=self._node_of,
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
            node=self._node_of(brokers[number]),
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


def _settings_item(
    resource: tuple[int, str, int, Sequence[tuple[str, str, bool]]],
) -> dict[str, Any]:
    """Return the item of a topic's settings; `config_value` is the counter, if they have one."""
    _, name, error, settings = resource
    item: dict[str, Any] = {"topic": name, "error": error_name(error)}
    for setting, value, _ in settings:
        if setting == COUNTER_SETTING:
            item["config_value"] = counter_of(value)
    return item
