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
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from fencepost.clusters.kafka_port import Role, role_of
from fencepost.clusters.reference.nodes.configuration import MS, Configuration
from fencepost.clusters.reference.nodes.rules import Rules
from fencepost.clusters.reference.oracle.finding import Finding
from fencepost.clusters.reference.simulated.cluster import CLIENTS_FROM, HARNESS_FROM
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.simulation.network import Trouble
from fencepost.clusters.simulation.world import Watcher
from fencepost.harness.interpreter.books import Unwritten
from fencepost.harness.scenario.trial_spec import Storm
from fencepost.harness.trials.diary import Diary
from fencepost.harness.trials.directing import interpreter_of
from fencepost.harness.trials.faulty_nodes import MisconfiguredNodes, send_garbled_requests
from fencepost.harness.trials.metadata_clients import Administrator, MetadataReader
from fencepost.harness.trials.plan import TrialPlan
from fencepost.harness.trials.recording import TrialRecording
from fencepost.harness.trials.schedule import LeaderKiller, SlowNodes, TrialSteps
from fencepost.harness.trials.storms import PLAY_STORMS
from fencepost.harness.trials.trial_cluster import (
    build_cluster,
    build_oracle,
    stale_brokers,
    watched_kinds,
)
from fencepost.harness.virtual.evidence import Overheard, few_collections
from fencepost.history.failure import HarnessError
from fencepost.nemesis.simulated.wire import SimulatedWire
from fencepost.nemesis.steps import flat as flat_steps
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.topology import Flows
from fencepost.nemesis.verbs.partition import Partition
from fencepost.nemesis.verbs.registry import EPISODES
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.verbs.step import Step
from fencepost.nemesis.verbs.wipe import Wipe
from fencepost.workloads.simulated.clients import Clients
from fencepost.workloads.simulated.produce_poll import SimulatedProducePoll, counted

STUCK: Final = "stuck-isr"
"""The finding if the cluster does not recover."""

_S: Final = 1_000_000_000
_TICK_NS: Final = 20_000_000
_QUIET_NS: Final = 700_000_000
_STILL_BROKEN_NS: Final = 3_000_000_000
"""The time for which a cluster that did not heal in time is recorded further."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """The result of one seed."""

    seed: int
    storm: str
    findings: tuple[Finding, ...]
    """The findings, in order; a cluster that did not recover is the last one."""
    excused: tuple[str, ...]
    """Why records may be gone by a fault that nothing survives, a sentence a partition.

    With any, the trial is no evidence of anything."""
    crash: str
    """The error in the code of the simulation itself; empty: none."""
    event_count: int
    virtual_ns: int
    acknowledged_count: int
    cpu_s: float
    digest: str = ""

    @property
    def anomalies(self) -> tuple[str, ...]:
        """The names of what was found, each once."""
        return tuple(dict.fromkeys(finding.anomaly for finding in self.findings))


@few_collections()
def run_trial(
    plan: TrialPlan,
    rules: Rules,
    *,
    digest: bool = False,
    witnessed: bool = False,
    diary: Diary | None = None,
    recording: TrialRecording | None = None,
) -> TrialResult:
    """Carry a plan out. A failure in the simulation itself is in the result, too."""
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
        excused=trial.oracle.records.excuses,
        crash=crash,
        event_count=world.event_count,
        virtual_ns=world.now_ns,
        acknowledged_count=trial.oracle.records.acknowledged_count,
        cpu_s=time.process_time() - begin_s,
        digest=world.digest(),
    )


@cache
def _keep_what_is_there() -> None:
    """Exempt from garbage collection all that the process has before its first trial.

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
        self.cluster = build_cluster(
            plan.cluster, rules, seed=plan.seed, digest=digest, witnessed=witnessed
        )
        self._world = self.cluster.world
        self.oracle = build_oracle(self.cluster)
        self._draw = random.Random(f"schedule/{plan.seed}")  # noqa: S311  # to be repeated
        if plan.garbled:
            send_garbled_requests(self.cluster, seed=plan.seed)
        draw = random.Random(f"misfits/{plan.seed}")  # noqa: S311  # to be repeated
        self._misfits = MisconfiguredNodes(plan, self.cluster, draw)
        self._has_rules = _lays_rules(plan)
        self._wire = self._laid_wire()
        if recording is not None:
            recording.begin(self.cluster)
        self._interpreter = interpreter_of(
            self.cluster,
            wire=self._wire if self._has_rules else None,
            oracle=self.oracle,
            draw=self._draw,
            journal=Unwritten() if recording is None else recording.faults,
            played=Unwritten() if recording is None else recording,
        )
        self._ambush = LeaderKiller(
            self.cluster, self.oracle, self._interpreter, seed=plan.seed, regicidal=plan.regicidal
        )
        self._laggards = SlowNodes(self.cluster, self._interpreter, seed=plan.seed)

    def _laid_wire(self) -> SimulatedWire | None:
        if not self._has_rules and self._recording is None:
            return None
        return SimulatedWire(
            self._world,
            journal=None if self._recording is None else self._recording.tape,
            clients_from=CLIENTS_FROM,
            harness_from=HARNESS_FROM,
            overhears=self._recording is not None,
        )

    def go(self) -> None:
        """Run all of it, up to the first finding."""
        self._prepare()
        if not self._begun():
            return
        workload = self._clients()
        workload.start()
        self._faults()
        is_whole = self._recover()
        if self._recording is not None:
            self._recording.healed()
            self.cluster.run(0 if is_whole else _STILL_BROKEN_NS)
        workload.stop(timeout_s=20.0)
        self.cluster.run(_QUIET_NS)
        if not self.oracle.findings:
            self.oracle.finish(self._world.now_ns)

    def _prepare(self) -> None:
        """Set clocks, configurations and watchers."""
        for node, drift_ppm in self._plan.drift_ppm.items():
            self._world.drift(self.cluster.host(node), drift_ppm)
        watcher: Watcher = self._ambush if self._plan.storm is Storm.QUORUM else self.oracle
        for node, configuration in self.cluster.kit.configurations.items():
            self.cluster.configure(node, _configured(configuration, self._plan))
        if self._diary is not None:
            watcher = Overheard(self._diary.note, watcher)
        if self._recording is not None:
            watcher = Overheard(self._recording.hear, watcher)
        sent, delivered = watched_kinds(self.cluster)
        self._world.watch(watcher, sent=sent, delivered=delivered)

    def _faults(self) -> None:
        """Perform all faults of the plan, and heal them."""
        plan, world = self._plan, self._world
        if plan.loss:
            world.network.trouble(
                Trouble(loss=plan.loss, duplication=plan.loss, reordering=3 * plan.loss)
            )
        schedule = TrialSteps(
            plan,
            self.cluster,
            self._interpreter,
            draw=self._draw,
            unless_misfit=self._unless_misfit,
        )
        if self._recording is not None:
            self._recording.faults_begin()
        if plan.duels:
            self._duel()
        self._ambush.begin()
        if plan.laggards:
            self._laggards.begin()
        self._break(schedule, world.now_ns + int(plan.faults_s * _S))
        if self._recording is not None:
            self._recording.faults_end()
        self._ambush.end()
        self._laggards.end()
        world.network.trouble(None)
        self._interpreter.heal_all()
        self._interpreter.performer.forget(self.cluster.nodes, "all was mended")

    def _begun(self) -> bool:
        """Return whether the cluster came up and has its topics; with a rule off it may not."""
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
        if plan.administers or isinstance(plan.cluster, ReferenceZooKeeperSpec):
            self._read_metadata()
        if plan.administers:
            self._administer()
        if self._recording is not None:
            self._recording.workload = workload
        return workload

    def _read_metadata(self) -> None:
        """Have two readers ask for metadata, now of this broker and now of that."""
        clients, recording = Clients(self.cluster), self._recording
        for number, seed in enumerate((self._plan.seed, -self._plan.seed)):
            told = None if recording is None else recording.reads(number)
            asker = MetadataReader(self.cluster.brokers, seed=seed, told=told)
            clients.place(f"reader-{number}", asker)

    def _administer(self) -> None:
        plan, recording = self._plan, self._recording
        moved = next(
            ((one.name, 0, one.assignment[0]) for one in plan.topics[1:] if one.assignment), None
        )
        administrator = Administrator(
            self.cluster.brokers,
            seed=plan.seed,
            moved=moved,
            upgrades_to=self.cluster.kit.level + 1 if plan.upgrades else None,
            writes=None if recording is None else recording.writes,
        )
        Clients(self.cluster).place("administrator", administrator)

    def _break(self, schedule: TrialSteps, end_ns: int) -> None:
        """Perform faults until the time is up or something is found."""
        for step in schedule.steps(end_ns):
            if step is not None and not self._interpreter.perform(step, end_s=end_ns / _S):
                schedule.missed()
            if self._is_decided() or self._world.now_ns >= end_ns:
                return

    def _is_decided(self) -> bool:
        """Return whether the trial may end: something was found, and it is not recorded."""
        return bool(self.oracle.findings) and self._recording is None

    def _duel(self) -> None:
        controllers = [n for n in self.cluster.nodes if role_of(n) is Role.CONTROLLER]
        one, other = self._draw.sample(controllers, 2)
        flows = Flows(flows=frozenset({(one, other), (other, one)}))
        self._interpreter.perform(Partition(name="duel", cut=flows), end_s=0.0)

    def _unless_misfit(self, step: Step) -> Step | None:
        """Return the step; None if a node was started as it should not be in its place."""
        now_ns, lost = self._world.now_ns, self._misfits.lost
        is_allowed = self._misfits.allows(step)
        for node in self._misfits.lost - lost:
            wipe = Wipe(target=NamedNodes(nodes=(node,)))
            self._interpreter.performer.found(wipe, (node,), "its disk is new, and not formatted")
        if self._recording is not None and not is_allowed:
            self._recording.play_on(now_ns, step)
        return step if is_allowed else None

    def _recover(self) -> bool:
        """Wait until the cluster is whole: it has to be, in time. Whether it was seen to be."""
        end_ns = self._world.now_ns + int(self._plan.recovery_s * _S)
        while not self._is_decided():
            impaired = self._interpreter.observer.impaired()
            stale = stale_brokers(self.cluster, self.oracle)
            missing = (impaired | stale) - self._misfits.lost
            if not missing:
                return True
            if self._world.now_ns >= end_ns:
                named = ", ".join(sorted(missing))
                self._found(f"{named} not whole {self._plan.recovery_s:g} s after healing")
                return False
            self.cluster.run(5 * _TICK_NS)
        return False

    def _found(self, words: str) -> None:
        now_ns = self._world.now_ns
        self.oracle.findings.append(Finding(anomaly=STUCK, time_ns=now_ns, node=-1, words=words))


def _configured(own: Configuration, plan: TrialPlan) -> Configuration:
    """Return the configuration of a node.

    Where many leaders of the quorum fall, each is soon missed.
    """
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


def _lays_rules(plan: TrialPlan) -> bool:
    drawn = plan.mix.faults if plan.storm is Storm.MIX and plan.mix is not None else ()
    if any(isinstance(step, Lay) for kind in set(drawn) for step in EPISODES[kind].example()):
        return True
    laid = any(isinstance(step, Lay) for step in flat_steps(plan.play or ()))
    return laid or plan.storm in PLAY_STORMS


def _told(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    place = f"{last.filename.rpartition('/')[2]}:{last.lineno}"
    notes = "; ".join(getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {error} ({place}) {notes}".strip()
