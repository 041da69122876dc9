"""The produce-poll workload in virtual time. See `workloads.port.Workload`.

The spec is the real one's. Every consumer assigns itself all keys: groups are shared out by a
protocol of clients, which is no part of what is simulated.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Final, TypeVar

from fencepost.clusters.reference.nodes.configuration import MS, S
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.topic_spec import TopicSpec, keys_of
from fencepost.history.counts import Counts
from fencepost.history.failure import HarnessError
from fencepost.history.manifest import Promises
from fencepost.history.poll_recorder import PollRecorder
from fencepost.history.send_recorder import SendRecorder
from fencepost.workloads.kind import SimulatedSetup
from fencepost.workloads.produce_poll_spec import Consume, ProducePollSpec
from fencepost.workloads.simulated.clients import Clients
from fencepost.workloads.simulated.polls import CountedPolls, Polls, RecordedPolls
from fencepost.workloads.simulated.producer import SimulatedProducer
from fencepost.workloads.simulated.readers import ConsumerPlan, SimulatedConsumer, SimulatedReader
from fencepost.workloads.simulated.sends import CountedSends, ProducerPlan, RecordedSends, Sends

T = TypeVar("T")

_START_NS_MAX: Final = 30 * S
_CONSUMER_STOP_NS: Final = 9 * S
_SLOTS: Final = 1 << 14
"""The slots of a segment: a simulated client's are many, and most runs are short."""


@dataclass(frozen=True, slots=True)
class Recorders:
    """Makes the records of clients by name and process."""

    sends: Callable[[str, int], Sends]
    polls: Callable[[str, int], Polls]


def recorded(raw: Path, keys: Sequence[str]) -> Recorders:
    """Make recorders in a run's raw directory."""

    def sends(name: str, process: int) -> Sends:
        recorder = SendRecorder(raw, client=name, process=process, keys=keys, slot_count=_SLOTS)
        return RecordedSends(recorder, key_count=len(keys))

    def polls(name: str, process: int) -> Polls:
        recorder = PollRecorder(
            raw,
            client=name,
            process=process,
            keys=keys,
            slot_count=_SLOTS,
            record_count=4 * _SLOTS,
        )
        return RecordedPolls(recorder)

    return Recorders(sends, polls)


def counted() -> Recorders:
    """Make recorders that keep only counts: for runs of which nothing else is kept."""
    return Recorders(lambda _, process: CountedSends(process), lambda _, __: CountedPolls())


class SimulatedProducePoll:
    """The workload of one run."""

    def __init__(
        self,
        spec: ProducePollSpec,
        cluster: SimulatedCluster,
        *,
        topics: Sequence[TopicSpec],
        recorders: Recorders,
        seed: int,
        noted: bool = False,
    ) -> None:
        self._spec = spec
        self._cluster = cluster
        self._keys = keys_of(topics)
        self._places = [
            (topic.name, partition) for topic in topics for partition in range(len(topic.keys))
        ]
        self._recorders = recorders
        self._seed = seed
        self._noted = noted
        self._clients = Clients(cluster)
        self._producers: dict[str, SimulatedProducer] = {}
        self._consumers: dict[str, SimulatedConsumer] = {}
        self._counts: tuple[int, Counts] | None = None
        """The last, and at which event that was."""

    @property
    def promises(self) -> Promises:
        """Return the promises to its clients, by their configuration."""
        return self._spec.promises

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys that it writes to and reads."""
        return self._keys

    @property
    def pids(self) -> Mapping[str, int]:
        """Return no processes: the clients are all in this one."""
        return {}

    def start(self) -> None:
        """Start every client, and let the world go on until each has recorded an operation."""
        spec = self._spec
        for index in range(spec.consumers):
            name = f"consumer-{index}"
            self._consumers[name] = self._consumer(index, name)
            self._clients.place(name, self._consumers[name])
        for index in range(spec.producers):
            name = f"producer-{index}"
            self._producers[name] = self._producer(index, name)
            self._clients.place(name, self._producers[name])
        end_ns = self._cluster.world.now_ns + _START_NS_MAX
        while not all(
            chain(
                (one.invoked_count for one in self._producers.values()),
                (one.poll_count for one in self._consumers.values()),
            )
        ):
            if self._cluster.world.now_ns >= end_ns:
                raise HarnessError("a client recorded no operation within 30 s")
            self._cluster.run(10 * MS)

    def stop(self, timeout_s: float) -> None:
        """End the producers, then the consumers, so that the last sends are polled. Idempotent."""
        producers, consumers = list(self._producers.values()), list(self._consumers.values())
        for producer in producers:
            producer.stop()
        self._clients.wait(producers, within_ns=int(timeout_s * S) - _CONSUMER_STOP_NS)
        self._clients.end(producers)
        for consumer in consumers:
            consumer.stop()
        self._clients.wait(consumers, within_ns=_CONSUMER_STOP_NS)
        self._clients.end(consumers)

    def abandon(self) -> None:
        """End every client where it is: the world does not go on."""
        self._clients.end_all()

    def final_read(self, timeout_s: float) -> tuple[str, ...]:
        """Read every key from its first to its last offset; return the keys so read."""
        name = "final-reader-0"
        process = self._spec.producers + self._spec.consumers
        reader = SimulatedReader(
            process,
            self._places,
            brokers=self._cluster.brokers,
            polls=self._recorders.polls(name, process),
            deadline_ns=self._cluster.world.now_ns + int(timeout_s * S),
        )
        self._clients.place(name, reader)
        self._clients.wait([reader], within_ns=int((timeout_s + 1) * S))
        self._clients.end([reader])
        return tuple(key for number, key in enumerate(self._keys) if number in reader.done)

    def counts(self) -> Counts:
        """Return the counts of the clients so far; counted anew once something has happened."""
        event_count = self._cluster.world.event_count
        if self._counts is None or self._counts[0] != event_count:
            self._counts = (event_count, self._counted())
        return self._counts[1]

    def _counted(self) -> Counts:
        producers, consumers = list(self._producers.values()), list(self._consumers.values())
        return Counts(
            invoked=sum([one.invoked_count for one in producers]),
            ok=sum([one.ok_count for one in producers]),
            fail=sum([one.fail_count for one in producers]),
            info=sum([one.info_count for one in producers]),
            polls=sum([one.poll_count for one in consumers]),
            polled_records=sum([one.record_count for one in consumers]),
        )

    def failures(self) -> tuple[str, ...]:
        """Return no failures: a client that fails ends the world."""
        return ()

    def _producer(self, index: int, name: str) -> SimulatedProducer:
        spec = self._spec
        plan = ProducerPlan(
            process=index,
            places=self._places,
            brokers=self._cluster.brokers,
            rate=spec.rate / spec.producers,
            acks=spec.acks,
            idempotence=spec.idempotence,
            message_timeout_ns=spec.message_timeout_ms * MS,
            batch_max=spec.batch_max,
            in_flight_max=spec.in_flight_max,
            seed=self._seed,
            noted=self._noted,
        )
        return SimulatedProducer(plan, self._recorders.sends(name, index))

    def _consumer(self, index: int, name: str) -> SimulatedConsumer:
        spec = self._spec
        process = spec.producers + index
        in_group = spec.consume is Consume.SUBSCRIBE or (
            spec.consume is Consume.BOTH and index % 2 == 1
        )
        plan = ConsumerPlan(
            process=process,
            places=self._places,
            brokers=self._cluster.brokers,
            reassign_s=0.0 if in_group else spec.reassign_s,
            seed=self._seed,
            noted=self._noted,
        )
        return SimulatedConsumer(plan, self._recorders.polls(name, process))


def build(spec: ProducePollSpec, setup: SimulatedSetup) -> SimulatedProducePoll:
    """Return the workload of a recorded run."""
    return SimulatedProducePoll(
        spec,
        setup.cluster,
        topics=setup.topics,
        recorders=recorded(setup.run.raw, keys_of(setup.topics)),
        seed=setup.seed,
    )
