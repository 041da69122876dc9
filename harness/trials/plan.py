"""The plan of a trial: drawn from its seed, or stated by a scenario.

A drawn plan is a small cluster with short time-outs, whose faults come in one of several *storms*:
windows around one message, relays of a leadership, Fetches that outlive their senders, a mix with a
budget, chaos, or ambushes on the quorum. Its random source is the plan's own: the world's draws do
not depend on the draws here, so that steps can be left out of a schedule.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from fencepost.clusters.kafka_port import KafkaSpec, Role
from fencepost.clusters.port import NodeName
from fencepost.clusters.reference.nodes.levels import LEVEL_EPOCHS
from fencepost.clusters.reference_zookeeper.system import ReferenceZooKeeperSpec
from fencepost.clusters.systems import system_of
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.harness.prepare.abilities import There, refuse_missing_abilities
from fencepost.harness.prepare.reference import refuse_unsimulated_clients, refuse_what_is_kafkas
from fencepost.harness.scenario.scenario import Scenario
from fencepost.harness.scenario.trial_spec import Storm, TrialSpec
from fencepost.history.failure import SpecError, UsageError
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.play import step_word
from fencepost.nemesis.schedules.late_messages import REPLICAS_MIN
from fencepost.nemesis.steps import Choose, Repeat, places
from fencepost.nemesis.verbs.registry import verb_of
from fencepost.nemesis.verbs.step import Play, Step
from fencepost.workloads.metadata_spec import MetadataSpec
from fencepost.workloads.produce_poll_spec import Consume, ProducePollSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialPlan(TrialSpec):
    """One trial, apart from its rules."""

    seed: int
    cluster: KafkaSpec | ReferenceZooKeeperSpec
    topics: tuple[TopicSpec, ...]
    records: ProducePollSpec
    metadata: MetadataSpec | None = None
    """A workload whose promises hold here, too; the trial's own readers and administrator ask."""
    mix: MixSpec | None = None
    play: Play | None = None
    faults_s: float = 9.0
    recovery_s: float = 20.0


_QUICK: Final[Mapping[str, str]] = {
    "broker.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
    "replica.lag.time.max.ms": "1500",
    "controller.quorum.election.timeout.ms": "500",
    "controller.quorum.fetch.timeout.ms": "1000",
    "controller.socket.timeout.ms": "2000",
    "replica.socket.timeout.ms": "2000",
}
"""The time-outs at which a fault shows within seconds."""
_UPGRADES: Final = 0.3
"""The share of plans that begin a level below; never below LEVEL_EPOCHS, where KAFKA-14139 is."""
_EPISODES: Final = ("kill", "pause", "restart", "wipe", "cut_power", "partition", "delay")
_TARGETS: Final = ("one broker", "leader", "isr follower", "active controller")
_STORMS: Final = (
    (Storm.WINDOWS,) * 7
    + (Storm.RELAYS,) * 3
    + (Storm.CHAOS,) * 4
    + (Storm.QUORUM,) * 5
    + (Storm.MIX,)
)
_BROKERS: Final = {Storm.RELAYS: (3,)}
_CONTROLLERS: Final = {Storm.CHAOS: (1, 3, 3), Storm.QUORUM: (3,)}
_LOSSES: Final = {
    Storm.WINDOWS: (0.0,),
    Storm.RELAYS: (0.0,),
    Storm.QUORUM: (0.0, 0.02, 0.05),
}
_SMALL_ANSWERS: Final = {Storm.RELAYS: 0.6}
_REGICIDES: Final = 0.45
_LATE_FETCHES: Final = 0.12
"""The share of plans of windows with three brokers whose clusters are as late Fetches need them."""


def drawn_plan(seed: int, *, levels: Sequence[int] = (2, 3)) -> TrialPlan:
    """Return the plan of a seed, at one of these metadata.versions, the later ones more often."""
    draw = random.Random(f"plan/{seed}")  # noqa: S311  # to be repeated, not kept secret
    level = draw.choices(levels, weights=range(1, len(levels) + 1))[0]
    storm = draw.choice(_STORMS)
    controllers = draw.choice(_CONTROLLERS.get(storm, (1, 3)))
    upgrades = level > LEVEL_EPOCHS and draw.random() < _UPGRADES
    cluster = KafkaSpec(
        controllers=controllers,
        brokers=draw.choice(_BROKERS.get(storm, (2, 3, 3))),
        settings=_QUICK,
        metadata_version=str(level - upgrades),
    )
    plan = TrialPlan(
        seed=seed,
        cluster=cluster,
        topics=topics_of(cluster.brokers),
        records=ProducePollSpec(
            producers=2, consumers=1, rate=draw.choice((40, 120)), consume=Consume.ASSIGN
        ),
        storm=storm,
        mix=MixSpec(
            faults=_EPISODES,
            targets=_TARGETS,
            gap_s=(0.2, 1.0),
            duration_s=(0.3, 4.0),
            overlap=draw.random() < 0.5,  # noqa: PLR2004
            down={Role.CONTROLLER: 1, Role.BROKER: draw.choice((1, 2))},
        ),
        loss=draw.choice(_LOSSES.get(storm, (0.0, 0.0, 0.0, 0.01))),
        drift_ppm=_drifts(draw, cluster),
        wipes=draw.choice((0.0, 0.02, 0.1)),
        upgrades=upgrades,
        duels=storm is Storm.QUORUM and draw.random() < 0.6,  # noqa: PLR2004
        small_answers=draw.random() < _SMALL_ANSWERS.get(storm, 0.3),
        old_software=draw.random() < 0.15,  # noqa: PLR2004
        unformatted=draw.random() < 0.2 and controllers > 1,  # noqa: PLR2004
        laggards=draw.random() < (0.8 if upgrades else 0.1),
    )
    if storm is Storm.QUORUM and draw.random() < _REGICIDES:
        # Everybody hears everybody, but not all of it: a new leader's first words get lost.
        loss = draw.choice((0.02, 0.05))
        return replace(plan, regicidal=True, duels=False, small_answers=True, loss=loss)
    # Below LEVEL_EPOCHS a late Fetch lets an empty replica in by design.
    fits = cluster.brokers >= REPLICAS_MIN and level >= LEVEL_EPOCHS
    if storm is Storm.WINDOWS and fits and draw.random() < _LATE_FETCHES:
        return replace(plan, storm=Storm.LATE_FETCHES)
    return plan


def plan_of(scenario: Scenario, seed: int) -> TrialPlan:
    """Return the scenario as a trial.

    Raise UsageError, with its place, for what a trial cannot do.
    """
    spec = scenario.cluster
    make = system_of(spec).in_virtual_time
    if make is None:
        name = system_of(spec).name
        raise UsageError(f"{scenario.name}: a cluster of {name} has no nodes in virtual time")
    refuse_what_is_kafkas(scenario)
    refuse_missing_abilities(scenario, There(make=make))
    _refuse_what_is_not_tried(scenario)
    assert isinstance(spec, KafkaSpec | ReferenceZooKeeperSpec)
    assert isinstance(scenario.workload, ProducePollSpec)
    return TrialPlan(
        seed=seed,
        cluster=spec,
        topics=scenario.topics,
        records=scenario.workload,
        metadata=scenario.beside_of(MetadataSpec),
        mix=scenario.mix,
        play=scenario.play,
        faults_s=scenario.time_limit_s,
        recovery_s=scenario.recovery_limit_s,
        **_stated(scenario.trial or _spec_of(scenario)),
    )


def _refuse_what_is_not_tried(scenario: Scenario) -> None:
    refuse_unsimulated_clients(scenario)
    if isinstance(scenario.cluster, KafkaSpec) and scenario.cluster.combined:
        words = "trials cannot have combined nodes: run the scenario instead"
        raise scenario.document.error(SpecError(("cluster", "combined"), words))
    for place, step in places(scenario.play or ()):
        if (why := why_not_tried(step)) is not None:
            found = SpecError(("play", *place), f"{step_word(step)}: {why}: leave it to a run")
            raise scenario.document.error(found)


def why_not_tried(step: Step) -> str | None:
    """The reason why no trial can do this step, though its cluster can; None if trials can.

    A block has none: each of its steps is asked about.
    """
    return None if isinstance(step, Repeat | Choose) else verb_of(step).why_not_tried(step)


def _spec_of(scenario: Scenario) -> TrialSpec:
    """Return the trial spec of a scenario that says nothing of trials."""
    storm = Storm.NONE
    if scenario.play is not None:
        storm = Storm.PLAY
    elif scenario.mix is not None:
        storm = Storm.MIX
    return TrialSpec(storm=storm, administers=scenario.beside_of(MetadataSpec) is not None)


def _stated(spec: TrialSpec) -> dict[str, Any]:
    return {field.name: getattr(spec, field.name) for field in fields(TrialSpec)}


def topics_of(brokers: int) -> tuple[TopicSpec, ...]:
    """Return the topics: one of two replicas, where windows are widest, and one of three.

    The latter needs three brokers.
    """
    two = TopicSpec(name="t", assignment=((1, 2),), settings={"min.insync.replicas": "1"})
    if brokers < 3:  # noqa: PLR2004
        return (two,)
    three = TopicSpec(
        name="u", assignment=((1, 2, 3), (2, 3, 1)), settings={"min.insync.replicas": "2"}
    )
    return (two, three)


def _drifts(draw: random.Random, cluster: KafkaSpec) -> dict[NodeName, int]:
    if draw.random() < 0.7:  # noqa: PLR2004
        return {}
    nodes: Sequence[NodeName] = cluster.nodes
    return {node: draw.randrange(-500, 501) for node in nodes if node.startswith(Role.BROKER)}
