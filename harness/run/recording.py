"""The course of every run once its cluster is up: clients, faults, healing, and reading back.

Order matters: clients start on a whole cluster; faults end and heal before the clients stop, so
that there are acknowledged operations after them; the final reads come last, when no client writes.
The caller decides whether time is the machine's or a simulated world's. Nodes and clients are
sampled once a second, for the plots and never for a verdict.
"""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from fencepost.clusters.abilities import Explains, Measures, Skews
from fencepost.clusters.port import Cluster, NodeName, Observable
from fencepost.harness.interpreter.books import PerformedPlay
from fencepost.harness.interpreter.client_faults import ClientFaults
from fencepost.harness.interpreter.cutting import cutters_of
from fencepost.harness.interpreter.interpreter import Interpreter
from fencepost.harness.interpreter.mixing import perform_mix
from fencepost.harness.interpreter.network import Network
from fencepost.harness.interpreter.observer import Looks, Observer
from fencepost.harness.interpreter.performer import Performer
from fencepost.harness.interpreter.shortfalls import Shortfalls
from fencepost.harness.interpreter.window_book import WindowBook
from fencepost.harness.manifest import note
from fencepost.harness.progress import Progress, Status
from fencepost.harness.run.clients import Together
from fencepost.harness.run.ending import EarlyEnd, ended_by_a_signal
from fencepost.harness.scenario.mix import seeded_mix
from fencepost.harness.scenario.scenario import Scenario
from fencepost.harness.seeds import stream
from fencepost.harness.timing import RealTime, Time
from fencepost.history.beat import STALL, Beat, Beats, read_beats, stalls
from fencepost.history.clock import ClockSkew, TellsTime
from fencepost.history.counts import Counts
from fencepost.history.failure import HarnessError
from fencepost.history.journal import FaultJournal, RowJournal, SampleJournal
from fencepost.history.manifest import NemesisWork, read_manifest
from fencepost.history.run_directory import RunDirectory
from fencepost.history.wall_clock import WallClock
from fencepost.nemesis.steps import starts_clients
from fencepost.nemesis.wire.port import BreaksNetwork
from fencepost.nemesis.wire.rules import Link
from fencepost.nemesis.wire.status import WireStatus

_FINAL_READ_LIMIT_S = 120.0
_NAMED_MAX = 10
_CLIENT_STOP_LIMIT_S = 60.0
_STILL_BROKEN_S = 3.0
_INTERVAL_S = 1.0


class Sampler:
    """A writer of samples to the journal, at most once a second, that knows the present rate."""

    def __init__(self, cluster: Cluster, journal: SampleJournal, time: Time | None = None) -> None:
        self._cluster = cluster
        self._measured = cluster if isinstance(cluster, Measures) else None
        self._journal = journal
        self._time = time or RealTime()
        self._last_s = self._time.now_s()
        self._last_ok = 0
        self._cpu_s: dict[str, float] = {}
        self.ok_per_s = 0.0

    def sample(self, counts: Counts) -> float:
        """Sample if a second has passed.

        Return the rate of acknowledged sends a second, as last seen.
        """
        passed_s = self._time.now_s() - self._last_s
        if passed_s < _INTERVAL_S:
            return self.ok_per_s
        self.ok_per_s = (counts.ok - self._last_ok) / passed_s
        self._journal.add("run", "acknowledged_count", counts.ok)
        self._journal.add("run", "polled_count", counts.polled_records)
        self._sample_nodes(passed_s)
        self._last_s += passed_s
        self._last_ok = counts.ok
        return self.ok_per_s

    def _sample_nodes(self, passed_s: float) -> None:
        if self._measured is None:
            return
        for node in self._cluster.nodes:
            usage = self._measured.usage(node)
            if usage is None:
                self._cpu_s.pop(node, None)
                continue
            self._journal.add(node, "rss_bytes", usage.rss_bytes)
            if node in self._cpu_s:
                of_one_core = max(0.0, usage.cpu_s - self._cpu_s[node]) / passed_s
                self._journal.add(node, "cpu_fraction", of_one_core)
            self._cpu_s[node] = usage.cpu_s


@dataclass(slots=True, kw_only=True)
class Recording:
    """One run of clients and faults on a cluster that is up. `go` performs it."""

    scenario: Scenario
    cluster: Observable
    workload: Together
    wire: BreaksNetwork | None
    links: Collection[Link]
    run: RunDirectory
    clock: TellsTime
    progress: Progress
    seed: int
    wall: WallClock | None = None
    """The wall clock of the nodes, where it is this machine's."""
    time: Time = field(default_factory=RealTime)
    observing: Callable[[Callable[[], int]], AbstractContextManager[Looks]] | None = None
    """Opens the looks at the cluster, given the count of acknowledged sends.
    None: a thread of its own looks."""
    _dead: set[str] = field(default_factory=set)
    _breaking: bool = False

    def go(self) -> None:
        """Start the clients, break, heal, stop, read back; all of it into the run directory."""
        with (
            FaultJournal(self.run.raw, self.clock) as faults,
            SampleJournal(self.run.raw, self.clock) as samples,
            RowJournal(self.run.raw, "windows") as windows,
            Beat(also=None if self.wall is None else self.wall.look) as beat,
            ended_by_a_signal(self.progress.say) as check_end,
        ):
            self._record(faults, samples, WindowBook(windows, self.clock), check_end)
            self._note_stalls(beat.so_far(), faults)

    def _note_stalls(self, own: Beats, faults: FaultJournal) -> None:
        """Note as faults the times in which every process of the run stood still.

        Clients in virtual time are none, and leave no beat.
        """
        found = map(read_beats, self.run.clients.glob("*.beat"))
        origin_ns = read_manifest(self.run.manifest_path).origin_ns
        for gap in stalls(own, [beats for beats in found if beats is not None]):
            words = f"the harness and all clients stood still for {gap.seconds:.1f} s"
            faults.past(
                STALL,
                self.cluster.nodes,
                begin_ns=gap.begin_ns - origin_ns,
                end_ns=gap.end_ns - origin_ns,
                evidence=words,
            )
            self.progress.say(f"{words}: the machine was stopped, or had no room")

    def _record(
        self,
        faults: FaultJournal,
        samples: SampleJournal,
        windows: WindowBook,
        check_end: Callable[[], None],
    ) -> None:
        played = PerformedPlay(self.run.play_path)
        performer = Performer(self.cluster, journal=faults, played=played)
        network = Network(
            self.cluster,
            wire=self.wire,
            cutters=cutters_of(self.cluster, wire=self.wire, links=self.links),
            journal=faults,
            played=played,
        )
        network.count_registrations()
        clients = ClientFaults(self.workload.clients, journal=faults, played=played)
        sampler = Sampler(self.cluster, samples, self.time)
        if not starts_clients(self.scenario.play or ()):
            self.workload.start()
        with self._observer(lambda: self.workload.counts().ok, network.status) as observer:
            interpreter = Interpreter(
                cluster=self.cluster,
                performer=performer,
                network=network,
                clients=clients,
                played=played,
                observer=observer,
                draw=stream(self.seed, "nemesis"),
                begin_clients=self.workload.start,
                windows=windows,
                time=self.time,
                shortfalls=Shortfalls(self.clock),
                on_tick=lambda now_s, _: self._tick(now_s, interpreter, sampler, check_end),
            )
            self._break_until_told(interpreter, faults)
            self.workload.start()  # where the play ended before its step
            self.progress.say("healing")
            whole = interpreter.heal(limit_s=self.scenario.recovery_limit_s)
            note(self.run, healed_ns=self.clock.now_ns())
            after_s = self.scenario.clients_after_healing_s
            # A cluster that did not heal in time is observed a little longer.
            interpreter.idle(time_limit_s=after_s if whole else _STILL_BROKEN_S)
        self.workload.stop(timeout_s=_CLIENT_STOP_LIMIT_S)
        self._final_read(interpreter.shortfalls)
        # A client that had to be killed recorded all it did; what it still had open is info.
        interpreter.shortfalls += [f"a client: {words}" for words in self.workload.failures()]
        interpreter.shortfalls += network.misread()
        note(
            self.run,
            end_ns=self.clock.now_ns(),
            shortfalls=tuple(interpreter.shortfalls),
            not_whole=tuple(interpreter.shortfalls.of_cluster),
            clock_skews=self._clock_skews(),
            clock_watched=self.wall is not None,
        )

    def _clock_skews(self) -> tuple[ClockSkew, ...]:
        of_nodes = self.cluster.clock_skews() if isinstance(self.cluster, Skews) else ()
        return (*of_nodes, *(self.wall.skews() if self.wall is not None else ()))

    def _observer(
        self, acknowledged: Callable[[], int], status: Callable[[], WireStatus]
    ) -> AbstractContextManager[Looks]:
        if self.observing is not None:
            return self.observing(acknowledged)
        topics = [topic.name for topic in self.scenario.topics]
        return Observer(self.cluster, acknowledged=acknowledged, wire=status, topics=topics)

    def _break_until_told(self, interpreter: Interpreter, faults: FaultJournal) -> None:
        """Perform the faults; if the user ends them before their time, the run is not whole."""
        self._breaking = True
        try:
            self._break(interpreter, faults)
        except EarlyEnd:
            now_s, limit_s = interpreter.now_s(), self.scenario.time_limit_s
            words = f"the user ended the run after {now_s:.1f} of {limit_s:g} s"
            interpreter.shortfalls.append(words)
            note(self.run, ended_early=True)
        finally:
            self._breaking = False

    def _break(self, interpreter: Interpreter, faults: FaultJournal) -> None:
        limit_s = self.scenario.time_limit_s
        if self.scenario.play is not None:
            interpreter.perform_play(self.scenario.play, time_limit_s=limit_s)
        elif self.scenario.mix is not None:
            mix = seeded_mix(self.scenario.mix, seed=self.seed, keys=self.scenario.keys)
            recovery_s = self.scenario.recovery_limit_s
            begin_s, zero_s = interpreter.now_s(), self.clock.now_ns() / 1e9 - interpreter.now_s()
            idleness = perform_mix(
                interpreter, mix, time_limit_s=limit_s, recovery_s=recovery_s, zero_s=zero_s
            )
            longest = idleness.longest
            work = NemesisWork(
                work_s=interpreter.now_s() - begin_s,
                fault_count=faults.effect_count,
                idle_s=longest.idle_s,
                idle_at_s=longest.begin_s,
                idle_for=longest.words,
                waits_s=dict(idleness.waits_s),
            )
            note(self.run, nemesis=work)
        else:
            interpreter.idle(time_limit_s=limit_s)

    def _final_read(self, shortfalls: list[str]) -> None:
        self.progress.say("reading everything back")
        complete = self.workload.final_read(timeout_s=_FINAL_READ_LIMIT_S)
        missing = sorted(set(self.workload.keys) - set(complete))
        if missing:
            shortfalls.append(f"final reads are incomplete: {first_few(missing)}")

    def _tick(
        self,
        now_s: float,
        interpreter: Interpreter,
        sampler: Sampler,
        check_end: Callable[[], None],
    ) -> None:
        if self._breaking:
            check_end()
        if dead := self.workload.failures():
            raise HarnessError(f"a client ended, and no fault had killed it: {dead[0]}")
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
                broken=(
                    *interpreter.performer.open_labels,
                    *interpreter.network.open_labels,
                    *interpreter.clients.open_labels,
                ),
            )
        )


def _end_of(cluster: Observable, node: NodeName) -> str:
    if isinstance(cluster, Explains):
        return cluster.obituary(node).removeprefix(f"{node} ")
    return f"see {cluster.logs(node)[0]}"


def first_few(keys: Sequence[str]) -> str:
    """Return the first ten, and how many more there are: an ensemble has thousands of znodes."""
    more = f" and {len(keys) - _NAMED_MAX} more" if len(keys) > _NAMED_MAX else ""
    return f"{', '.join(keys[:_NAMED_MAX])}{more}"
