"""The recording half of a run: a cluster, its clients, and what goes wrong between them.

Order matters: clients start on a whole cluster; faults end and heal before the clients stop, so
that there are acknowledged operations after them; the final reads come last, when nobody writes.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from clusters.hosts.warden import Warden
from clusters.kafka.cluster import KafkaCluster
from clusters.kafka.prepared import Prepared
from clusters.port import Cluster
from harness.interpreter import Interpreter
from harness.observer import Observer
from harness.options import RunOptions
from harness.performer import Performer
from harness.progress import Progress, Status
from harness.samples import Sampler
from harness.scenario import Scenario
from harness.seeds import stream, stream_seed
from history.clock import Clock
from history.failure import HarnessError, SpecError
from history.journal import FaultJournal, SampleJournal
from history.manifest import read_manifest, write_manifest
from history.run_directory import RunDirectory
from nemesis.faults.catalogue import ABILITIES
from nemesis.mix import Mix
from nemesis.play import Act
from workloads.produce_poll import ProducePoll

__all__ = ["record", "refuse_missing_abilities"]

_FINAL_READ_LIMIT_S = 120.0
_CLIENT_STOP_LIMIT_S = 60.0


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
    with Warden(run_id=f"{scenario.name}/{run.root.name}") as warden:
        cluster = KafkaCluster(
            scenario.cluster,
            warden=warden,
            prepared=prepared,
            directory=run.nodes,
            clock=clock,
            port_base=options.port_base,
        )
        refuse_missing_abilities(scenario, cluster)
        with _started(cluster, progress):
            _note(run, versions=dict(cluster.versions))
            cluster.create_topics(scenario.topics)
            workload = ProducePoll(
                scenario.workload,
                warden=warden,
                bootstrap_servers=cluster.bootstrap_servers,
                topics=scenario.topics,
                run=run,
                clock=clock,
                seed=stream_seed(options.seed, "workload"),
            )
            _Recording(
                scenario=scenario,
                cluster=cluster,
                workload=workload,
                run=run,
                clock=clock,
                progress=progress,
                seed=options.seed,
            ).go()


def refuse_missing_abilities(scenario: Scenario, cluster: Cluster) -> None:
    """UsageError with the step's place if the play needs what this kind of cluster cannot do."""
    for index, step in enumerate(scenario.play or ()):
        if not isinstance(step, Act):
            continue
        for ability in ABILITIES[step.word]:
            if not isinstance(cluster, ability):
                error = SpecError(
                    ("play", index, str(step.word)),
                    f"this kind of cluster cannot {step.word} ({ability.__name__})",
                )
                raise scenario.document.error(error)


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
    workload: ProducePoll
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
        performer = Performer(self.cluster, journal=faults, play_path=self.run.play_path)
        sampler = Sampler(self.cluster, samples)
        self.workload.start()
        with Observer(self.cluster, acknowledged=lambda: self.workload.counts().ok) as observer:
            interpreter = Interpreter(
                cluster=self.cluster,
                performer=performer,
                observer=observer,
                draw=stream(self.seed, "nemesis"),
                on_tick=lambda now_s, _: self._tick(now_s, performer, sampler, interpreter),
            )
            self._break(interpreter)
            self.progress.say("healing")
            interpreter.heal(limit_s=self.scenario.recovery_limit_s)
            _note(self.run, healed_ns=self.clock.now_ns())
            interpreter.idle(time_limit_s=1.0)  # operations after the last heal, for the record
        self.workload.stop(timeout_s=_CLIENT_STOP_LIMIT_S)
        self._final_read(interpreter.shortfalls)
        # A client that had to be killed recorded all it did; what it still had open is info.
        interpreter.shortfalls += [f"a client: {words}" for words in self.workload.failures()]
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

    def _tick(
        self, now_s: float, performer: Performer, sampler: Sampler, interpreter: Interpreter
    ) -> None:
        if dead := self.workload.failures():
            raise HarnessError(f"a client died by itself: {dead[0]}")
        for node in performer.died_by_themselves():
            if node not in self._dead:
                self._dead.add(node)
                log = self.cluster.logs(node)[0]
                interpreter.shortfalls.append(f"{node} died by itself at {now_s:.1f} s (see {log})")
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
                broken=tuple(
                    f"{fault.name} {', '.join(sorted(fault.broken | fault.healing))}"
                    for fault in performer.open_faults
                ),
            )
        )


def _note(run: RunDirectory, **changes: object) -> None:
    manifest = read_manifest(run.manifest_path)
    write_manifest(run.manifest_path, replace(manifest, **changes))  # type: ignore[arg-type]  # by name
