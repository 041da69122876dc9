"""One trial: a plan is carried out in a simulated world, with an oracle over every step.

Safety first: from the start to the end of the faults and of the healing, what the oracle finds ends
the trial. Then liveness: with everything mended, the cluster has to be whole within a bound, and
once it is quiet, what was acknowledged has to be everywhere.

A trial that is recorded is the same world, event by event, until something is found; it goes on to
the end of its schedule, since those who judge the record may need more than the oracle.
"""

import gc
import random
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from clusters.kafka_port import Role, role_of
from clusters.port import NodeName
from clusters.reference.nodes.configuration import MS, Configuration
from clusters.reference.nodes.rules import Rules
from clusters.reference.oracle.finding import Finding
from clusters.reference.oracle.insides import Insides
from clusters.reference.oracle.oracle import DELIVERED, SENT, Oracle
from clusters.reference.simulated.cluster import CLIENTS_FROM, HARNESS_FROM, build
from clusters.simulation.network import Trouble
from clusters.simulation.world import Watcher
from harness.scenario.trial_spec import Storm
from harness.trials.ambush import Ambush
from harness.trials.askers import Administrator, Reader
from harness.trials.diary import Diary
from harness.trials.laggards import Laggards
from harness.trials.misfits import Misfits
from harness.trials.plan import TrialPlan
from harness.trials.recording import TrialRecording
from harness.trials.stage import Stage
from history.failure import HarnessError
from nemesis import late_fetches, relays
from nemesis.chaos import Chaos
from nemesis.mix import Mix
from nemesis.simulated.wire import SimulatedWire
from nemesis.steps import Play, dealt
from nemesis.steps import flat as flat_steps
from nemesis.topology import Flows
from nemesis.verbs.partition import Partition
from nemesis.verbs.rule import Lay
from nemesis.verbs.step import Step
from nemesis.windows import drawn_window
from workloads.simulated.clients import Clients
from workloads.simulated.produce_poll import SimulatedProducePoll, counted

__all__ = ["STUCK", "TrialResult", "run_trial"]

STUCK: Final = "stuck-isr"
"""What is found if the cluster does not recover."""

_S: Final = 1_000_000_000
_TICK_NS: Final = 20_000_000
_QUIET_NS: Final = 700_000_000
_STILL_BROKEN_NS: Final = 3_000_000_000
"""What did not heal in time is recorded for a little longer."""
_WIRED: Final = (Storm.WINDOWS, Storm.RELAYS, Storm.LATE_FETCHES)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """What came of one seed."""

    seed: int
    storm: str
    findings: tuple[Finding, ...]
    """In the order in which they were found; what did not recover is the last one."""
    excused: bool
    """Records were lost by a fault that nothing survives: no evidence of anything."""
    crash: str
    """What went wrong in the code of the simulation itself; empty: nothing."""
    event_count: int
    virtual_ns: int
    acknowledged_count: int
    cpu_s: float
    digest: str = ""

    @property
    def anomalies(self) -> tuple[str, ...]:
        """The names of what was found, each once."""
        return tuple(dict.fromkeys(finding.anomaly for finding in self.findings))


def run_trial(
    plan: TrialPlan,
    rules: Rules,
    *,
    digest: bool = False,
    witnessed: bool = False,
    diary: Diary | None = None,
    recording: TrialRecording | None = None,
) -> TrialResult:
    """Carry a plan out. What fails in the simulation itself is in the result, too."""
    _keep_what_is_there()
    begin_s = time.process_time()
    trial = _Trial(
        plan, rules, digest=digest, witnessed=witnessed, diary=diary, recording=recording
    )
    crash = ""
    try:
        trial.go()
    except Exception as error:  # noqa: BLE001  # the next seed has to go on
        crash = _told(error)
    world = trial.cluster.world
    return TrialResult(
        seed=plan.seed,
        storm=str(plan.storm),
        findings=tuple(trial.oracle.findings),
        excused=bool(trial.oracle.kept.excused),
        crash=crash,
        event_count=world.event_count,
        virtual_ns=world.now_ns,
        acknowledged_count=trial.oracle.kept.acknowledged_count,
        cpu_s=time.process_time() - begin_s,
        digest=world.digest(),
    )


@cache
def _keep_what_is_there() -> None:
    """Have no collection look at what the process has before its first trial.

    That is a quarter of a million objects of modules, which stay. A full look at them takes as
    long as several trials, and there is one every thirty or so.
    """
    gc.freeze()


class _Trial:
    def __init__(
        self,
        plan: TrialPlan,
        rules: Rules,
        *,
        digest: bool,
        witnessed: bool,
        diary: Diary | None,
        recording: TrialRecording | None,
    ) -> None:
        self._plan = plan
        self._diary = diary
        self._recording = recording
        self.cluster = build(
            plan.cluster, seed=plan.seed, rules=rules, digest=digest, witnessed=witnessed
        )
        self._world = self.cluster.world
        some = next(iter(self.cluster.configurations.values()))
        self.oracle = Oracle(
            Insides(self._world.hosts),
            lease_ns=some.lease_timeout_ns,
            min_isr=some.min_insync_replicas,
            clients_from=CLIENTS_FROM,
        )
        self._draw = random.Random(f"schedule/{plan.seed}")  # noqa: S311  # to be repeated
        self._misfits = Misfits(plan, self.cluster, random.Random(f"misfits/{plan.seed}"))  # noqa: S311
        wire = None
        self._has_rules = plan.storm in _WIRED or _lays(plan.play or ()) or _delays(plan)
        if self._has_rules or recording is not None:
            wire = SimulatedWire(
                self._world,
                journal=None if recording is None else recording.tape,
                clients_from=CLIENTS_FROM,
                harness_from=HARNESS_FROM,
                overhears=recording is not None,
            )
        self._wire = wire
        self._given_up = False
        is_play = plan.storm is Storm.PLAY
        self._has_misfits = is_play and (plan.old_software or plan.unformatted)
        """A play then names each node that it starts: it is what became of a drawn schedule."""
        self._begin_ns = 0
        """From when on the times of a play count."""
        self._stage = Stage(
            self.cluster,
            wire=wire if self._has_rules else None,
            oracle=self.oracle,
            draw=self._draw,
            told=None if recording is None else recording.deed,
        )
        if recording is not None:
            assert wire is not None
            recording.begin(self.cluster, wire)
        self._ambush = Ambush(
            self.cluster, self.oracle, self._stage, seed=plan.seed, regicidal=plan.regicidal
        )
        self._laggards = Laggards(self.cluster, self._stage, seed=plan.seed)

    def go(self) -> None:
        """All of it, up to the first finding."""
        plan, world = self._plan, self._world
        for node, drift_ppm in plan.drift_ppm.items():
            world.drift(self.cluster.host(node), drift_ppm)
        watcher: Watcher = self._ambush if plan.storm is Storm.QUORUM else self.oracle
        for node, configuration in self.cluster.configurations.items():
            self.cluster.configure(node, _configured(configuration, plan))
        if self._diary is not None:
            watcher = self._diary.before(watcher)
        if self._recording is not None:
            watcher = self._recording.before(watcher)
        world.watch(watcher, sent=SENT, delivered=DELIVERED)
        if not self._begun():
            return
        workload = self._clients()
        workload.start()
        if plan.loss:
            world.network.trouble(
                Trouble(loss=plan.loss, duplication=plan.loss, reordering=3 * plan.loss)
            )
        self._begin_ns = world.now_ns
        if self._recording is not None:
            self._recording.faults_begin()
        if plan.duels:
            self._duel()
        self._ambush.begin()
        if plan.laggards:
            self._laggards.begin()
        self._break(world.now_ns + int(plan.faults_s * _S))
        if self._recording is not None:
            self._recording.faults_end()
        self._ambush.end()
        self._laggards.end()
        world.network.trouble(None)
        self._stage.heal()
        is_whole = self._recover()
        if self._recording is not None:
            self._recording.healed()
            self._run(0 if is_whole else _STILL_BROKEN_NS)
        workload.stop(timeout_s=20.0)
        self._run(_QUIET_NS)
        if not self.oracle.findings:
            self.oracle.finish(world.now_ns)

    def _begun(self) -> bool:
        """Whether the cluster came up and has its topics; with a rule off it may not."""
        try:
            self.cluster.start()
            self.cluster.create_topics(self._plan.topics)
        except HarnessError as error:
            if not self.oracle.findings:
                self._found(f"the cluster did not begin: {error}")
            return False
        if self._wire is not None:
            # To look anew takes time, which a trial without rules does not spend.
            view = self.cluster.view() if self._has_rules else self.cluster.watch.view
            self._wire.name_topics({} if view is None else view.topic_ids)
        if self._recording is not None:
            self._recording.topics_are_there()
        return True

    def _clients(self) -> SimulatedProducePoll:
        plan = self._plan
        workload = SimulatedProducePoll(
            plan.records,
            self.cluster,
            topics=plan.topics,
            recorders=counted() if self._recording is None else self._recording.recorders,
            seed=plan.seed,
            noted=True,
        )
        if plan.administers:
            brokers, clients = self.cluster.brokers, Clients(self.cluster)
            upgrades_to = self.cluster.level + 1 if plan.upgrades else None
            moved = next(
                ((one.name, 0, one.assignment[0]) for one in plan.topics[1:] if one.assignment),
                None,
            )
            recording = self._recording
            for number, seed in enumerate((plan.seed, -plan.seed)):
                told = None if recording is None else recording.reads(number)
                reader = Reader(brokers, seed=seed, told=told)
                clients.place(f"reader-{number}", _as_client(reader))
            administrator = Administrator(
                brokers,
                seed=plan.seed,
                moved=moved,
                upgrades_to=upgrades_to,
                writes=None if recording is None else recording.writes,
            )
            clients.place("administrator", _as_client(administrator))
        if self._recording is not None:
            self._recording.workload = workload
        return workload

    def _break(self, end_ns: int) -> None:
        """Faults until the time is up or something is found."""
        for step in self._steps(end_ns):
            if step is not None and not self._stage.perform(step, end_s=end_ns / _S):
                self._after_a_miss()
            if self._is_decided() or self._world.now_ns >= end_ns:
                return

    def _is_decided(self) -> bool:
        """Whether nobody wants to know more."""
        return bool(self.oracle.findings) and self._recording is None

    def _duel(self) -> None:
        controllers = [n for n in self.cluster.nodes if role_of(n) is Role.CONTROLLER]
        one, other = self._draw.sample(controllers, 2)
        flows = Flows(flows=frozenset({(one, other), (other, one)}))
        self._stage.perform(Partition(name="duel", cut=flows), end_s=0.0)

    def _after_a_miss(self) -> None:
        """A window that did not open is left; a play of the user's ends where it failed."""
        self._given_up = True

    def _steps(self, end_ns: int) -> Iterator[Step | None]:
        """The schedule as it comes; None: look again, time has passed."""
        match self._plan.storm:
            case Storm.PLAY:
                yield from self._of_play(tuple(self._plan.play or ()))
            case Storm.WINDOWS:
                yield from self._of_plays(end_ns, self._window, replicas_min=2)
            case Storm.RELAYS:
                yield from self._of_plays(end_ns, self._relay, replicas_min=relays.REPLICAS_MIN)
            case Storm.LATE_FETCHES:
                least = late_fetches.REPLICAS_MIN
                yield from self._of_plays(end_ns, self._late_fetch, replicas_min=least)
            case Storm.NONE:
                while self._world.now_ns < end_ns:
                    self._run(10 * _TICK_NS)
                    yield None
            case Storm.MIX | Storm.CHAOS | Storm.QUORUM:
                yield from self._as_they_are_due(end_ns)

    def _of_play(self, play: Play) -> Iterator[Step | None]:
        for _, step in dealt(play, self._draw):
            if self._given_up:
                return
            due_ns = self._begin_ns + round((step.at_s or 0.0) * _S)
            if due_ns > self._world.now_ns:  # of two at one time, nothing happens in between
                self._run(due_ns - self._world.now_ns)
            yield self._unless_misfit(step) if self._has_misfits else step

    def _of_plays(
        self, end_ns: int, drawn: Callable[[str, tuple[int, ...]], Play], *, replicas_min: int
    ) -> Iterator[Step | None]:
        """Drawn plays, one after the other, each on a cluster that is whole if it can be."""
        keys = [
            (f"{topic.name}-{partition}", replicas)
            for topic in self._plan.topics
            for partition, replicas in enumerate(topic.assignment or ())
            if len(replicas) >= replicas_min
        ]
        while self._world.now_ns < end_ns:
            key, replicas = self._draw.choice(keys)
            self._given_up = False
            yield from self._of_play(drawn(key, self._led_first(key, replicas)))
            self._stage.heal()
            whole_by_ns = min(end_ns, self._world.now_ns + 5 * _S)
            while self._stage.impaired() and self._world.now_ns < whole_by_ns:
                self._run(5 * _TICK_NS)
                yield None

    def _window(self, key: str, replicas: tuple[int, ...]) -> Play:
        nodes = self.cluster.nodes
        return drawn_window(self._draw, key=key, replicas=replicas, nodes=nodes)

    def _relay(self, key: str, replicas: tuple[int, ...]) -> Play:
        return relays.drawn_relay(self._draw, key=key, replicas=replicas)

    def _late_fetch(self, key: str, replicas: tuple[int, ...]) -> Play:
        return late_fetches.drawn_late_fetch(self._draw, key=key, replicas=replicas)

    def _led_first(self, key: str, replicas: Sequence[int]) -> tuple[int, ...]:
        view = self.cluster.watch.view
        shown = None if view is None else view.partitions.get(key)
        leader = None if shown is None else shown.leader
        if leader is None or leader not in replicas:
            leader = replicas[0]
        return (leader, *(one for one in replicas if one != leader))

    def _as_they_are_due(self, end_ns: int) -> Iterator[Step | None]:
        plan, begin_ns = self._plan, self._world.now_ns
        keys = tuple(key for topic in plan.topics for key in topic.keys)
        nodes = self.cluster.nodes
        if plan.storm is Storm.QUORUM:
            nodes = tuple(node for node in nodes if role_of(node) is Role.CONTROLLER)
        chaos = Chaos(self._draw, nodes, wipes=plan.wipes)
        mix = None
        if plan.storm is Storm.MIX and plan.mix is not None:
            mix = Mix(plan.mix, self._draw, keys)
        while self._world.now_ns < end_ns:
            self._run(_TICK_NS if mix is None else 2 * _TICK_NS)
            now_s = (self._world.now_ns - begin_ns) / _S
            scene = self._stage.scene()
            if mix is None:
                steps = chaos.due(now_s, scene=scene)
            else:
                steps = mix.due(now_s, scene=scene, impaired=self._stage.impaired())
            for step in steps:
                yield self._unless_misfit(step)
            yield None

    def _unless_misfit(self, step: Step) -> Step | None:
        """The step; none, if a node was started as it should not be in its place."""
        now_ns, lost = self._world.now_ns, self._misfits.lost
        is_allowed = self._misfits.allows(step)
        if self._recording is not None:
            self._recording.lost(self._misfits.lost - lost)
            if not is_allowed:
                self._recording.tried(now_ns, step)
        return step if is_allowed else None

    def _recover(self) -> bool:
        """Wait until the cluster is whole: it has to be, in time. Whether it was seen to be."""
        end_ns = self._world.now_ns + int(self._plan.recovery_s * _S)
        while not self._is_decided():
            missing = (self._stage.impaired() | self._unregistered()) - self._misfits.lost
            if not missing:
                return True
            if self._world.now_ns >= end_ns:
                named = ", ".join(sorted(missing))
                self._found(f"{named} not whole {self._plan.recovery_s:g} s after healing")
                return False
            self._run(5 * _TICK_NS)
        return False

    def _unregistered(self) -> frozenset[NodeName]:
        """Brokers that run and are not yet who is registered: what is shown of them is old."""
        insides, brokers = self.oracle.nodes, self.oracle.decided.brokers
        return frozenset(
            node
            for node in self.cluster.nodes
            if role_of(node) is Role.BROKER
            and (known := brokers.get(self.cluster.broker_id(node))) is not None
            and known.incarnation_id != insides.incarnation(self.cluster.broker_id(node))
        )

    def _found(self, words: str) -> None:
        now_ns = self._world.now_ns
        self.oracle.findings.append(Finding(anomaly=STUCK, time_ns=now_ns, node=-1, words=words))

    def _run(self, for_ns: int) -> None:
        self.cluster.run(for_ns)


class _Fleeting:
    """A node of the world that records nothing, as a client that can be told to end."""

    idle = True

    def __init__(self, node: Reader | Administrator) -> None:
        self.handle = node.handle

    def give_up(self) -> None:
        """There is nothing to end."""


def _as_client(node: Reader | Administrator) -> _Fleeting:
    return _Fleeting(node)


def _configured(own: Configuration, plan: TrialPlan) -> Configuration:
    """What a node starts with. Where many leaders of the quorum fall, each is soon missed."""
    if plan.small_answers:
        own = replace(own, fetch_records_max=1)
    if plan.regicidal:
        own = replace(
            own,
            election_timeout_ns=75 * MS,
            quorum_fetch_timeout_ns=150 * MS,
            metadata_max_wait_ns=50 * MS,
        )
    return own


def _lays(play: Play) -> bool:
    return any(isinstance(step, Lay) for step in flat_steps(play))


def _delays(plan: TrialPlan) -> bool:
    return plan.storm is Storm.MIX and plan.mix is not None and "delay" in plan.mix.faults


def _told(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
    notes = "; ".join(getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error} ({place}) {notes}".strip()
