"""Plans of trials of the ZooKeeper generation, drawn from their seeds.

As `plan.drawn_plan` draws those of a quorum: a small cluster with short time-outs, whose faults are
a mix with a budget, chaos, or late words. In some trials brokers send garbled requests, start with
another's id or time-outs out of order, or are below the draft's protocol. The rule
`member_incarnations_checked`, which is of no draft of this generation, is on: without it, a wiped
follower may join an ISR (KAFKA-14139).
"""

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fencepost.clusters.kafka_port import Role
from fencepost.clusters.reference.shell.property_values import RULES_ON
from fencepost.clusters.reference_zookeeper.system import SYSTEM, ReferenceZooKeeperSpec
from fencepost.harness.scenario.trial_spec import Storm
from fencepost.harness.trials.plan import TrialPlan, topics_of
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.workloads.produce_poll_spec import Consume, ProducePollSpec

_QUICK: Final[Mapping[str, str]] = {
    "zookeeper.session.timeout.ms": "2000",
    "broker.heartbeat.interval.ms": "300",
    "controller.heartbeat.timeout.ms": "1500",
    "broker.heartbeat.timeout.ms": "2500",
    "replica.lag.time.max.ms": "1500",
    "controller.socket.timeout.ms": "2000",
    "replica.socket.timeout.ms": "2000",
    RULES_ON: "member_incarnations_checked",
}
_EPISODES: Final = ("kill", "pause", "restart", "cut_power", "partition", "delay")
_TARGETS: Final = ("one broker", "leader", "isr follower", "active controller")

_LATE_WORDS: Final = 0.4
"""The share of plans whose faults are late words."""
_LATE_WORDS_S: Final = 15.0
"""Their time: one takes up to the half of it."""
_STRANGE: Final = 0.1
"""The share of plans for each kind of thing that no broker of our own does."""
_BELOW: Final = 0.12
"""The share of plans at whose protocol the draft does not hold, for all brokers or some."""


def drawn_zk_plan(seed: int) -> TrialPlan:
    """Return the plan of a seed."""
    draw = random.Random(f"zookeeper-plan/{seed}")  # noqa: S311  # to be repeated, not kept secret
    cluster = ReferenceZooKeeperSpec(
        zookeepers=draw.choice((1, 1, 3)), brokers=draw.choice((2, 3, 3)), settings=_QUICK
    )
    # A server that lost its disk is one that the ensemble does not survive in every case.
    strikes_servers = draw.random() < 0.4  # noqa: PLR2004
    plan = TrialPlan(
        seed=seed,
        cluster=cluster,
        topics=topics_of(cluster.brokers),
        records=ProducePollSpec(
            producers=2, consumers=1, rate=draw.choice((40, 120)), consume=Consume.ASSIGN
        ),
        storm=draw.choice((Storm.MIX, Storm.MIX, Storm.CHAOS)),
        mix=MixSpec(
            system=SYSTEM.name,
            faults=_EPISODES if strikes_servers else (*_EPISODES, "wipe"),
            targets=(*_TARGETS, "one zookeeper") if strikes_servers else _TARGETS,
            gap_s=(0.2, 1.0),
            duration_s=(0.3, 4.0),
            overlap=draw.random() < 0.5,  # noqa: PLR2004
            down={Role.ZOOKEEPER: 1, Role.BROKER: draw.choice((1, 2))},
        ),
        loss=draw.choice((0.0, 0.0, 0.0, 0.01)),
        wipes=draw.choice((0.0, 0.02, 0.1)),
        small_answers=draw.random() < 0.3,  # noqa: PLR2004
    )
    plan = replace(
        plan,
        garbled=draw.random() < _STRANGE,
        other_ids=draw.random() < _STRANGE,
        ill_timed=draw.random() < _STRANGE,
    )
    if draw.random() < _LATE_WORDS:
        # Nothing is lost or twice there: of two copies of an IsrChange the later one undoes what
        # was decided in between, which the draft leaves open.
        plan = replace(plan, storm=Storm.LATE_WORDS, faults_s=_LATE_WORDS_S, loss=0.0)
    if draw.random() < _BELOW:
        return _below(draw, plan)
    return plan


def _below(draw: random.Random, plan: TrialPlan) -> TrialPlan:
    """Return the plan with all brokers below the new behaviour, or some starts of that version.

    No records are lost then: below it a leader writes its ISR itself, whoever fetched from it, so
    that a follower that lost its disk, or its power, may join by design (KAFKA-14139).
    """
    assert plan.mix is not None
    faults = tuple(one for one in plan.mix.faults if one not in ("wipe", "cut_power"))
    plan = replace(plan, wipes=0.0, mix=replace(plan.mix, faults=faults))
    if draw.random() < 0.5:  # noqa: PLR2004
        return replace(plan, old_software=True)
    assert isinstance(plan.cluster, ReferenceZooKeeperSpec)
    return replace(plan, cluster=replace(plan.cluster, inter_broker_protocol=1))
