"""A run in virtual time: the scenario of a real cluster, on a simulated one, into the same files.

Everything that happens is drawn from the seed, so that the same command records the same history,
bit for bit; the manifest's versions have the digest of all events. The wall clock of such a run
begins at a fixed moment.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Self

from clusters.port import NodeName, NodeState
from clusters.reference.effects import NOTE
from clusters.reference.notebook import RecordedNotebook
from clusters.reference.notes import APPENDED_METADATA
from clusters.reference.simulated import CLIENTS_FROM, HARNESS_FROM, SimulatedCluster, build
from clusters.reference.simulated_witness import AppendTimes, write_simulated_witness
from harness.clients import Together, tables_of
from harness.observer import observed
from harness.options import RunOptions
from harness.progress import Progress
from harness.recording import Recording, note
from harness.reference import refuse_what_is_kafkas, release_like, rules_without
from harness.scenario import Scenario
from harness.seeds import stream_seed
from harness.timing import Time
from history.failure import HarnessError, UsageError
from history.journal import RowJournal
from history.run_directory import RunDirectory
from nemesis.conditions import Observation
from nemesis.simulated.tape import BufferedTape
from nemesis.simulated.wire import SimulatedWire
from nemesis.wire.rules import Link
from nemesis.wire.status import WireStatus
from workloads.port import Workload
from workloads.produce_poll_spec import ProducePollSpec
from workloads.simulated.metadata import SimulatedMetadata
from workloads.simulated.produce_poll import SimulatedProducePoll, recorded

__all__ = ["SimulatedObserver", "SimulatedTime", "prepare_simulated", "record_simulated"]

_ORIGIN_UTC_NS: Final = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000_000
_S: Final = 1_000_000_000
_STEP_S: Final = 0.01
_YOUNG_MAX: Final = 200_000
_METADATA_PROCESSES: Final = 100_000
"""Beyond the processes that clients of records can come to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """A cluster that nothing has happened to yet."""

    cluster: SimulatedCluster
    release: str
    origin_utc_ns: int


def prepare_simulated(scenario: Scenario, options: RunOptions) -> Simulated:
    """The cluster of a scenario. UsageError for what cannot be in virtual time."""
    refuse_what_is_kafkas(scenario)
    if scenario.membership is not None:
        raise UsageError(f"{scenario.name}: simulated clients move no partitions")
    rules = rules_without(options.without_rules)
    cluster = build(scenario.cluster, seed=options.seed, rules=rules)
    return Simulated(cluster=cluster, release=release_like(scenario), origin_utc_ns=_ORIGIN_UTC_NS)


def record_simulated(
    scenario: Scenario,
    options: RunOptions,
    simulated: Simulated,
    *,
    run: RunDirectory,
    progress: Progress,
) -> None:
    """Fill the run directory's raw history. HarnessError if the recording is not to be trusted."""
    cluster, topics = simulated.cluster, [topic.name for topic in scenario.topics]
    for ignored in cluster.ignored_settings:
        progress.say(f"{ignored} means nothing to a simulated node")
    times = AppendTimes(simulated.origin_utc_ns)
    cluster.world.watch(_Stamps(times))
    with ExitStack() as stack:
        stack.enter_context(_few_collections())
        wire = stack.enter_context(_wire(cluster, scenario, run)) if options.wire else None
        cluster.start()
        progress.say(f"{len(cluster.nodes)} nodes are up at {cluster.world.now_ns / _S:.2f} s")
        note(
            run,
            node_ids={node: cluster.broker_id(node) for node in cluster.nodes},
            recorded=_tables(scenario, wired=options.wire),
            stuck_isr_limit_s=scenario.recovery_limit_s,
        )
        cluster.create_topics(scenario.topics)
        if wire is not None:
            wire.name_topics(cluster.view().topic_ids)
        notebook = RecordedNotebook(run.raw, topics=topics, node_of=cluster.node_of)
        cluster.watch.notebook = stack.enter_context(notebook)
        time = SimulatedTime(cluster)
        links = [
            Link(source=e.source, target=e.target, address="", port=0) for e in cluster.links()
        ]
        Recording(
            scenario=scenario,
            cluster=cluster,
            workload=_workload(scenario, cluster, run, options.seed),
            wire=wire,
            links=[link for link in links if scenario.wires_clients or link.source != "clients"],
            run=run,
            clock=time,
            progress=progress,
            seed=options.seed,
            time=time,
            observing=lambda acknowledged, network: SimulatedObserver(
                cluster, acknowledged=acknowledged, network=network
            ),
        ).go()
        cluster.stop()
    _testify(cluster, topics, times, run, progress)
    note(run, versions=dict(cluster.versions))


class SimulatedTime:
    """`harness.timing.Time` and a clock for journals: the world's time."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def now_s(self) -> float:
        """Seconds of the world."""
        return self._cluster.world.now_ns / _S

    def now_ns(self) -> int:
        """The same in ns."""
        return self._cluster.world.now_ns

    def sleep(self, seconds: float) -> None:
        """Let the world go on for so long."""
        self._cluster.run(int(seconds * _S))


class SimulatedObserver:
    """`harness.observer.Looks` at a simulated cluster: what its own observer saw last."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        *,
        acknowledged: Callable[[], int],
        network: Callable[[], WireStatus],
    ) -> None:
        self._cluster = cluster
        self._acknowledged = acknowledged
        self._network = network
        self._time: Time = SimulatedTime(cluster)
        self._ids = {
            node: cluster.broker_id(node) for node in cluster.nodes if node.startswith("broker")
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """It has nothing to end."""

    def latest(self) -> Observation:
        """The latest look, with the states of processes as they are now."""
        return observed(
            self._cluster.watch.view,
            active_controller=self._cluster.controller_leader(),
            broker_ids=self._ids,
            states=self._states(),
            acknowledged_count=self._acknowledged(),
            wire=self._network(),
        )

    def next_look(self, *, timeout_s: float) -> Observation:
        """A look that began after this call, or the latest one if none ended within the bound."""
        watch = self._cluster.watch
        wanted = watch.begun_count + 1
        end_s = self._time.now_s() + timeout_s
        while watch.ended_count < wanted and self._time.now_s() < end_s:
            self._time.sleep(_STEP_S)
        return self.latest()

    def _states(self) -> dict[NodeName, NodeState]:
        return {node: self._cluster.state(node) for node in self._cluster.nodes}


class _Stamps:
    """A watcher of the world that only notes when metadata were appended."""

    def __init__(self, times: AppendTimes) -> None:
        self._times = times

    def started(self, node: int) -> None:
        pass

    def note(self, now: int, node: int, note: tuple[Any, ...]) -> None:  # noqa: ARG002
        assert note[0] == NOTE
        if note[1] == APPENDED_METADATA:
            self._times.add(now, note[2], note[3])

    def sent(self, now: int, source: int, target: int, kind: int, message: Any) -> None:
        pass

    def delivered(self, now: int, source: int, target: int, kind: int, message: Any) -> None:
        pass


@contextmanager
def _few_collections() -> Iterator[None]:
    """A world is a million small values without cycles, which a collector looks at in vain."""
    before = gc.get_threshold()
    gc.set_threshold(_YOUNG_MAX, 20, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


@contextmanager
def _wire(
    cluster: SimulatedCluster, scenario: Scenario, run: RunDirectory
) -> Iterator[SimulatedWire]:
    tape = BufferedTape(run.raw)
    yield SimulatedWire(
        cluster.world,
        journal=tape,
        clients_from=CLIENTS_FROM,
        harness_from=HARNESS_FROM,
        clients=scenario.wires_clients,
    )
    tape.close()


def _tables(scenario: Scenario, *, wired: bool) -> tuple[str, ...]:
    """The tables of the cluster that this run sets out to record."""
    seen = ("describes", "metadata_offsets", "quorum_claims")
    lain = ("metadata_log", "replicas", "replica_records", "node_settings")
    taped = ("wire",) if wired else ()
    return tuple(dict.fromkeys((*taped, *seen, *lain, *tables_of(scenario))))


def _workload(
    scenario: Scenario, cluster: SimulatedCluster, run: RunDirectory, seed: int
) -> Together:
    assert isinstance(scenario.workload, ProducePollSpec)
    first = SimulatedProducePoll(
        scenario.workload,
        cluster,
        topics=scenario.topics,
        recorders=recorded(run.raw, scenario.keys),
        seed=stream_seed(seed, "workload"),
    )
    beside: tuple[Workload, ...] = ()
    if scenario.metadata is not None:
        beside = (
            SimulatedMetadata(
                scenario.metadata,
                cluster,
                raw=run.raw,
                seed=stream_seed(seed, "metadata"),
                first_process=_METADATA_PROCESSES,
            ),
        )
    return Together(first=first, beside=beside, time=SimulatedTime(cluster))


def _testify(
    cluster: SimulatedCluster,
    topics: list[str],
    times: AppendTimes,
    run: RunDirectory,
    progress: Progress,
) -> None:
    with RowJournal(run.raw, "node_settings") as journal:
        for node in cluster.nodes:
            for name, value in sorted(cluster.settings(node).items()):
                journal.add({"node": node, "name": name, "value": value})
    disks = {node: cluster.host(node).disk for node in cluster.nodes}
    try:
        metadata_count, record_count = write_simulated_witness(
            disks, topics=topics, times=times, raw=run.raw
        )
    except OSError as error:
        raise HarnessError(f"cannot write what the disks hold in {run.raw}: {error}") from error
    progress.say(
        f"the disks hold {metadata_count:,} metadata records and {record_count:,} records of "
        "replicas"
    )
