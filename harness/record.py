"""The recording half of a run: a cluster, its clients, and what goes wrong between them.

Order matters: clients start on a whole cluster; faults end and heal before the clients stop, so
that there are acknowledged operations after them; the final reads come last, when nobody writes.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from clusters.hosts.warden import Warden
from clusters.kafka.cluster import KafkaCluster
from clusters.kafka.configuration import Route, direct
from clusters.kafka.prepared import Prepared
from clusters.port import Administers, Cluster, Explains, LogEnds, NodeName
from harness.clients import Together, tables_of, workload_of
from harness.interpreter import Interpreter
from harness.network import Network
from harness.observer import Observer
from harness.options import RunOptions
from harness.performer import Performer
from harness.played import PerformedPlay
from harness.progress import Progress, Status
from harness.samples import Sampler
from harness.scenario import Scenario, node_names
from harness.seeds import stream
from harness.wiring import links_of, wired_route
from history.clock import Clock
from history.failure import HarnessError, SpecError
from history.journal import FaultJournal, SampleJournal
from history.manifest import read_manifest, write_manifest
from history.run_directory import RunDirectory
from nemesis.conditions import log_ends_asked
from nemesis.faults.catalogue import ABILITIES
from nemesis.mix import EPISODE_WORDS, Mix
from nemesis.steps import Act, Await, CreateTopic, MoveLeader, Reassign, Step, flat
from nemesis.wire.rules import Link
from nemesis.wire.wire import Wire

__all__ = ["record", "refuse_missing_abilities", "unread"]

_FINAL_READ_LIMIT_S = 120.0
_CLIENT_STOP_LIMIT_S = 60.0
_STILL_BROKEN_S = 3.0


def record(
    scenario: Scenario,
    options: RunOptions,
    prepared: Prepared,
    *,
    run: RunDirectory,
    clock: Clock,
    progress: Progress,
) -> None:
    """Fill the run directory's raw history. HarnessError if the recording is not to be trusted."""
    with Warden(run_id=f"{scenario.name}/{run.root.name}") as warden, ExitStack() as stack:
        cluster, route = _placed(
            scenario, options, prepared, warden=warden, directory=run.nodes, clock=clock
        )
        links = links_of(cluster, route)
        wire = None
        if options.wire:
            log = run.nodes / "wire.log"
            wire = stack.enter_context(
                Wire(links, warden=warden, directory=run.raw, log=log, clock=clock)
            )
        stack.enter_context(_started(cluster, progress))
        _note(
            run,
            versions=dict(cluster.versions),
            node_ids={node: cluster.broker_id(node) for node in cluster.nodes},
            recorded=_tables(scenario, wired=options.wire),
            stuck_isr_limit_s=scenario.recovery_limit_s,
        )
        cluster.create_topics(scenario.topics)
        if wire is not None:
            wire.name_topics(cluster.view().topic_ids)
        stack.enter_context(cluster.watch(run.raw, topics=[t.name for t in scenario.topics]))
        workload = workload_of(
            scenario,
            cluster,
            warden=warden,
            prepared=prepared,
            run=run,
            clock=clock,
            seed=options.seed,
        )
        _Recording(
            scenario=scenario,
            cluster=cluster,
            workload=workload,
            wire=wire,
            links=links,
            run=run,
            clock=clock,
            progress=progress,
            seed=options.seed,
        ).go()
        stack.close()
        _testify(cluster, scenario, run, progress)


def _placed(
    scenario: Scenario,
    options: RunOptions,
    prepared: Prepared,
    *,
    warden: Warden,
    directory: Path,
    clock: Clock,
) -> tuple[KafkaCluster, Route]:
    """The cluster, with nothing of it running yet, and how its nodes find each other."""
    route: Route = direct
    if options.wire:
        route = wired_route(node_names(scenario.cluster), clients=scenario.wires_clients)
    cluster = KafkaCluster(
        scenario.cluster,
        warden=warden,
        prepared=prepared,
        directory=directory,
        clock=clock,
        port_base=options.port_base,
        route=route,
    )
    refuse_missing_abilities(scenario, cluster)
    return cluster, route


def _tables(scenario: Scenario, *, wired: bool) -> tuple[str, ...]:
    """The tables of the cluster that this run sets out to record."""
    seen = ("describes", "metadata_offsets", "quorum_claims")
    lain = ("metadata_log", "replicas", "replica_records", "node_settings", "log_findings")
    taped = ("wire",) if wired else ()
    return tuple(dict.fromkeys((*taped, *seen, *lain, *tables_of(scenario))))


def _testify(
    cluster: KafkaCluster, scenario: Scenario, run: RunDirectory, progress: Progress
) -> None:
    """Copy what the stopped nodes have on their disks; what cannot be read is a shortfall."""
    report = cluster.testify(run.raw, topics=[topic.name for topic in scenario.topics])
    damages = tuple(map(str, report.damages))
    unknown = sum(report.unknown_type_counts.values())
    if unknown:
        damages += (f"{unknown} metadata records of unknown types",)
    shortfalls = read_manifest(run.manifest_path).shortfalls
    _note(run, damages=damages, shortfalls=(*shortfalls, *unread(damages)))
    progress.say(
        f"the disks hold {sum(report.metadata_record_counts.values()):,} metadata records and "
        f"{report.replica_record_count:,} records in {report.replica_count} replicas"
    )


def unread(damages: Sequence[str]) -> tuple[str, ...]:
    """One sentence if there is any: checks of the disks did not see them whole."""
    if not damages:
        return ()
    more = f" and {len(damages) - 1} more" if len(damages) > 1 else ""
    return (f"not all that lies on the disks could be read: {damages[0]}{more}",)


def refuse_missing_abilities(scenario: Scenario, cluster: Cluster) -> None:
    """UsageError with the place of what the schedule needs and this kind of cluster cannot do."""
    for index, fault in enumerate(scenario.mix.faults if scenario.mix is not None else ()):
        for word in EPISODE_WORDS.get(fault, ()):
            for ability in ABILITIES[word]:
                if not isinstance(cluster, ability):
                    raise scenario.document.error(_cannot(("nemesis", "faults", index), ability))
    for index, top in enumerate(scenario.play or ()):
        for step in flat((top,)):
            for ability in _abilities(step):
                if not isinstance(cluster, ability):
                    raise scenario.document.error(_cannot(("play", index), ability))


def _cannot(path: tuple[str | int, ...], ability: type) -> SpecError:
    return SpecError(path, f"this kind of cluster cannot do that ({ability.__name__})")


def _abilities(step: Step) -> tuple[type, ...]:
    match step:
        case Act(word=word):
            return ABILITIES[word]
        case CreateTopic() | MoveLeader() | Reassign():
            return (Administers,)
        case Await(condition=condition) if log_ends_asked(condition):
            return (LogEnds,)
        case _:
            return ()


@contextmanager
def _started(cluster: Cluster, progress: Progress) -> Iterator[None]:
    begin_s = progress.elapsed_s()
    try:
        cluster.start()
        took_s = progress.elapsed_s() - begin_s
        progress.say(f"{len(cluster.nodes)} nodes are up after {took_s:.1f} s")
        yield
    finally:
        cluster.stop()


@dataclass(slots=True, kw_only=True)
class _Recording:
    scenario: Scenario
    cluster: Cluster
    workload: Together
    wire: Wire | None
    links: Collection[Link]
    run: RunDirectory
    clock: Clock
    progress: Progress
    seed: int
    _dead: set[str] = field(default_factory=set)

    def go(self) -> None:
        with (
            FaultJournal(self.run.raw, self.clock) as faults,
            SampleJournal(self.run.raw, self.clock) as samples,
        ):
            self._record(faults, samples)

    def _record(self, faults: FaultJournal, samples: SampleJournal) -> None:
        played = PerformedPlay(self.run.play_path)
        performer = Performer(self.cluster, journal=faults, played=played)
        network = Network(
            self.cluster, wire=self.wire, links=self.links, journal=faults, played=played
        )
        sampler = Sampler(self.cluster, samples)
        self.workload.start()
        with Observer(
            self.cluster,
            acknowledged=lambda: self.workload.counts().ok,
            wire=network.status,
        ) as observer:
            interpreter = Interpreter(
                cluster=self.cluster,
                performer=performer,
                network=network,
                played=played,
                observer=observer,
                draw=stream(self.seed, "nemesis"),
                on_tick=lambda now_s, _: self._tick(now_s, interpreter, sampler),
            )
            self._break(interpreter)
            self.progress.say("healing")
            whole = interpreter.heal(limit_s=self.scenario.recovery_limit_s)
            _note(self.run, healed_ns=self.clock.now_ns())
            # Operations after the last heal, for the record; or what did not heal, past its bound.
            interpreter.idle(time_limit_s=1.0 if whole else _STILL_BROKEN_S)
        self.workload.stop(timeout_s=_CLIENT_STOP_LIMIT_S)
        self._final_read(interpreter.shortfalls)
        # A client that had to be killed recorded all it did; what it still had open is info.
        interpreter.shortfalls += [f"a client: {words}" for words in self.workload.failures()]
        interpreter.shortfalls += network.misread()
        _note(self.run, end_ns=self.clock.now_ns(), shortfalls=tuple(interpreter.shortfalls))

    def _break(self, interpreter: Interpreter) -> None:
        limit_s = self.scenario.time_limit_s
        if self.scenario.play is not None:
            interpreter.perform_play(self.scenario.play, time_limit_s=limit_s)
        elif self.scenario.mix is not None:
            mix = Mix(self.scenario.mix, stream(self.seed, "mix"), self.scenario.keys)
            interpreter.perform_mix(mix, time_limit_s=limit_s)
        else:
            interpreter.idle(time_limit_s=limit_s)

    def _final_read(self, shortfalls: list[str]) -> None:
        self.progress.say("reading everything back")
        complete = self.workload.final_read(timeout_s=_FINAL_READ_LIMIT_S)
        missing = sorted(set(self.scenario.keys) - set(complete))
        if missing:
            shortfalls.append(f"final reads are incomplete: {', '.join(missing)}")

    def _tick(self, now_s: float, interpreter: Interpreter, sampler: Sampler) -> None:
        if dead := self.workload.failures():
            raise HarnessError(f"a client died by itself: {dead[0]}")
        for node in interpreter.performer.died_by_themselves():
            if node not in self._dead:
                self._dead.add(node)
                why = _end_of(self.cluster, node)
                interpreter.shortfalls.append(f"{node} died by itself at {now_s:.1f} s: {why}")
        counts = self.workload.counts()
        rate = sampler.sample(counts)
        self.progress.show(
            Status(
                now_s=now_s,
                limit_s=self.scenario.time_limit_s,
                ok_per_s=rate,
                ok_count=counts.ok,
                fail_count=counts.fail,
                info_count=counts.info,
                polled_count=counts.polled_records,
                broken=(*interpreter.performer.open_labels, *interpreter.network.open_labels),
            )
        )


def _end_of(cluster: Cluster, node: NodeName) -> str:
    if isinstance(cluster, Explains):
        return cluster.obituary(node).removeprefix(f"{node} ")
    return f"see {cluster.logs(node)[0]}"


def _note(run: RunDirectory, **changes: object) -> None:
    manifest = read_manifest(run.manifest_path)
    write_manifest(run.manifest_path, replace(manifest, **changes))  # type: ignore[arg-type]  # by name
