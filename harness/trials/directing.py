"""The interpreter of a trial: that of runs, with the policy of a trial, on a simulated cluster.

A trial's schedules are random: what can be done is done, at once and without waiting for evidence,
and the schedule goes on; a node that has already ended cannot be killed again. A step that no
trial can do is refused before the first one (`plan.why_not_tried`), and never left out.
"""

import math
import random
from collections.abc import Collection
from typing import Any, Final

from fencepost.clusters.kafka_port import Role, role_of
from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.harness.interpreter.books import FaultBook, Played
from fencepost.harness.interpreter.client_faults import ClientFaults
from fencepost.harness.interpreter.interpreter import Interpreter
from fencepost.harness.interpreter.network import Network
from fencepost.harness.interpreter.performer import Performer
from fencepost.harness.interpreter.policy import Policy
from fencepost.harness.trials.trial_cluster import Judge
from fencepost.harness.virtual.evidence import SimulatedTime
from fencepost.harness.virtual.looks import SimulatedLooks
from fencepost.nemesis.simulated.wire import SimulatedWire
from fencepost.nemesis.verbs.partition import Means
from fencepost.nemesis.verbs.registry import verb_of
from fencepost.nemesis.verbs.step import Step
from fencepost.nemesis.wire.rules import Flow

_TRIAL: Final = Policy(
    demands_evidence=False,
    tick_s=0.01,
    stop_s=5.0,
    request_s=1.5,
    vacant_s=0.0,
    restart_s=math.inf,
)


def interpreter_of(
    cluster: SimulatedCluster,
    *,
    wire: SimulatedWire | None,
    oracle: Judge,
    draw: random.Random,
    journal: FaultBook,
    played: Played,
) -> Interpreter:
    """Return what performs the steps of a trial. `oracle` is told whose disks lose something."""
    told = _Told(cluster, oracle, played)
    network = Network(
        cluster,
        wire=wire,
        cutters={Means.PROXY: _WorldCutter(cluster)},
        journal=journal,
        played=told,
    )
    looks = SimulatedLooks(
        cluster,
        acknowledged=lambda: oracle.records.acknowledged_count,
        rules={} if wire is None else wire.rules,
        registrations=told.registrations,
    )
    return Interpreter(
        cluster=cluster,
        performer=Performer(cluster, journal=journal, played=told, policy=_TRIAL),
        network=network,
        clients=ClientFaults(None, journal=journal, played=told),
        played=told,
        observer=looks,
        draw=draw,
        on_tick=None,
        time=SimulatedTime(cluster),
        policy=_TRIAL,
    )


class _Told:
    """`Played`: tells the oracle of disks that lose something, and passes every step on."""

    def __init__(self, cluster: SimulatedCluster, oracle: Judge, played: Played) -> None:
        self._oracle = oracle
        self._played = played
        self._ids = {
            node: cluster.broker_id(node) for node in cluster.nodes if role_of(node) is Role.BROKER
        }

    def note(self, step: Step, **done: Any) -> None:
        """Tell the oracle of a step before it is done."""
        self._played.note(step, **done)
        action = verb_of(step).action
        if action is not None and action.loses_records:
            for node in done["target"].nodes:
                if node in self._ids:
                    self._oracle.disk_lost(self._ids[node])

    def registrations(self, broker: NodeName) -> int:
        """Return a number that grows with the registrations granted to this broker."""
        known = self._oracle.decided.brokers.get(self._ids[broker])
        return 0 if known is None else known.broker_epoch


class _WorldCutter:
    """Cuts in the network of the world, where no frame has to be looked at: `Cutter`."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster

    def cut(self, name: str, flows: Collection[Flow]) -> str:
        """Let nothing pass in these flows."""
        del name
        self._cluster.world.network.block(self._numbers(flows))
        return "nothing is passed on"

    def mend(self, name: str, freed: Collection[Flow], *, others: Collection[Flow]) -> str:
        """Deliver in order what waited."""
        del name, others
        self._cluster.world.network.unblock(self._numbers(freed))
        return "frames are passed on again"

    def _numbers(self, flows: Collection[Flow]) -> list[tuple[int, int]]:
        number = self._cluster.broker_id
        return [(number(a), number(b)) for a, b in sorted(flows) if CLIENTS not in (a, b)]
