"""From what a scenario says of its clients to the workloads that run them.

A scenario has one workload that writes and reads records, and may have others beside it: one that
creates, changes and describes topics, one that moves the partitions of the run's own. Together they
are started, stopped and asked as one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from clusters.hosts.warden import Warden
from clusters.kafka.prepared import Prepared as KafkaPrepared
from clusters.kafka_port import BrokerCluster
from clusters.system import Prepared
from harness.scenario.scenario import Scenario
from harness.seeds import stream_seed
from harness.timing import RealTime, Time
from history.clock import Clock
from history.manifest import Promises
from history.run_directory import RunDirectory
from history.segment import Counts
from nemesis.clients import ControlsClients
from workloads import membership, metadata, transactions
from workloads.journalled import clients_way
from workloads.membership import membership_workload
from workloads.metadata import metadata_workload
from workloads.port import HasProcesses, Workload
from workloads.produce_poll import ProducePoll
from workloads.produce_poll_spec import ProducePollSpec
from workloads.transactions import Transactions
from workloads.transactions_spec import TransactionsSpec

__all__ = ["Together", "tables_of", "workload_of"]

_METADATA_PROCESSES = 100_000
"""Beyond the processes that clients of records can come to."""
_MEMBERSHIP_PROCESSES = 200_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Together:
    """Several workloads as one; what is asked of records is the first one's."""

    first: Workload
    beside: tuple[Workload, ...] = ()
    time: Time = field(default_factory=RealTime)

    @property
    def promises(self) -> Promises:
        """What the first one's clients are promised."""
        return self.first.promises

    @property
    def keys(self) -> tuple[str, ...]:
        """What the first one writes to and reads."""
        return self.first.keys

    @property
    def pids(self) -> Mapping[str, int]:
        """The client processes of all."""
        return {name: pid for one in self._all for name, pid in one.pids.items()}

    @property
    def clients(self) -> ControlsClients | None:
        """The first one's client processes; None: it has none."""
        return self.first.clients if isinstance(self.first, HasProcesses) else None

    def start(self) -> None:
        """Start all, one after the other."""
        for one in self._all:
            one.start()

    def stop(self, timeout_s: float) -> None:
        """Stop all within the bound; those beside first, which take little of it."""
        deadline_s = self.time.now_s() + timeout_s
        for one in reversed(self._all):
            one.stop(max(0.0, deadline_s - self.time.now_s()))

    def final_read(self, timeout_s: float) -> tuple[str, ...]:
        """What the first one read back."""
        return self.first.final_read(timeout_s)

    def counts(self) -> Counts:
        """How far the first one's clients are."""
        return self.first.counts()

    def failures(self) -> tuple[str, ...]:
        """Clients of any that ended by themselves."""
        return tuple(words for one in self._all for words in one.failures())

    @property
    def _all(self) -> Sequence[Workload]:
        return (self.first, *self.beside)


def tables_of(scenario: Scenario) -> tuple[str, ...]:
    """The tables of the cluster that the scenario's clients set out to record."""
    found: list[str] = []
    if isinstance(scenario.workload, TransactionsSpec):
        found += transactions.tables(scenario.workload)
    if scenario.metadata is not None:
        found += metadata.RECORDED
    if scenario.membership is not None:
        found += membership.RECORDED
    return tuple(dict.fromkeys(found))


def workload_of(
    scenario: Scenario,
    cluster: BrokerCluster,
    *,
    warden: Warden,
    prepared: Prepared,
    run: RunDirectory,
    clock: Clock,
    seed: int,
) -> Together:
    """The clients of a scenario, not started yet."""
    first: Workload
    match scenario.workload:
        case ProducePollSpec() as spec:
            first = ProducePoll(
                spec,
                warden=warden,
                bootstrap_servers=cluster.bootstrap_servers,
                topics=scenario.topics,
                run=run,
                clock=clock,
                seed=stream_seed(seed, "workload"),
            )
        case TransactionsSpec() as spec:
            assert isinstance(prepared, KafkaPrepared), "transactions are for Kafka"
            first = Transactions(
                spec,
                warden=warden,
                bootstrap_servers=cluster.bootstrap_servers,
                topics=scenario.topics,
                run=run,
                clock=clock,
                seed=stream_seed(seed, "workload"),
                prepared=prepared,
            )
    beside = _beside(scenario, cluster, warden=warden, run=run, clock=clock, seed=seed)
    return Together(first=first, beside=tuple(beside))


def _beside(
    scenario: Scenario,
    cluster: BrokerCluster,
    *,
    warden: Warden,
    run: RunDirectory,
    clock: Clock,
    seed: int,
) -> Iterator[Workload]:
    brokers = clients_way(cluster)
    if scenario.metadata is not None:
        yield metadata_workload(
            scenario.metadata,
            warden=warden,
            brokers=brokers,
            run=run,
            clock=clock,
            seed=stream_seed(seed, "metadata"),
            first_process=_METADATA_PROCESSES,
        )
    if scenario.membership is not None:
        yield membership_workload(
            scenario.membership,
            warden=warden,
            brokers=brokers,
            broker_ids=[cluster.broker_id(broker) for broker in brokers],
            keys=scenario.keys,
            run=run,
            clock=clock,
            seed=stream_seed(seed, "membership"),
            first_process=_MEMBERSHIP_PROCESSES,
        )
