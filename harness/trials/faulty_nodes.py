"""Brokers and controllers of a trial that are not as they should be: misfits, garblers, laggards.

*Misfits* start as they should not: of an old version, ill configured, or on a raw disk. With the
rules on, each ends without help. A broker is started as it should be afterwards; a controller that
lost its disk stays away for good, since it has forgotten its votes. It is always the same
controller, so that a majority remains. On ZooKeeper a broker of the version before may run beside
the others, and stays what it is.

*Garblers* are brokers on ZooKeeper that ask the controller for what cannot be, now and then. No
broker of our own does. So a share of the requests is followed by a copy that the draft "Controller
heartbeats" calls invalid: a heartbeat of a negative broker id or with a target state that does not
exist, an IsrChange to an ISR without members, or without its leader. The broker itself takes no
notice of the answer.
"""

import random
from dataclasses import replace
from typing import Any, Final

from fencepost.clusters.kafka_port import Role, role_of
from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.storage import META_PROPERTIES
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.reference.nodes.configuration import Configuration, S
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.clusters.reference.zk.configuration import InterBrokerProtocol, ZkConfiguration
from fencepost.clusters.reference.zk.messages import IsrChangeRequest, MetadataHeartbeatRequest
from fencepost.clusters.simulation.zookeeper.sessioned import SessionedNode
from fencepost.harness.trials.plan import TrialPlan
from fencepost.nemesis.targets import NamedNodes
from fencepost.nemesis.verbs.start import Start
from fencepost.nemesis.verbs.step import Step

_SHARE: Final = 0.3
"""The share of the starts of brokers that become those of an old version, or ill configured."""
_OLD_S_MAX: Final = 2.0
"""The time for which a node of an old version may try."""
_GARBLED_SHARE: Final = 0.5
_NO_STATE: Final = 7
_BEYOND: Final = 1 << 30
"""Added to the correlation of a copy: beyond all numbers of the broker's own."""


class MisconfiguredNodes:
    """The chooser of misfits, asked before each step of a schedule; what it draws is its own."""

    def __init__(self, plan: TrialPlan, cluster: SimulatedCluster, draw: random.Random) -> None:
        self._plan = plan
        self._cluster = cluster
        self._draw = draw
        self.lost: frozenset[NodeName] = frozenset()
        """The nodes that stay away."""

    def allows(self, step: Step) -> bool:
        """Return whether to perform the step; a start may become that of a misfit instead."""
        if not isinstance(step, Start):
            return True
        assert isinstance(step.target, NamedNodes)
        node = step.target.nodes[0]
        if self._cluster.state(node) is not NodeState.DOWN:
            return True
        if role_of(node) is Role.BROKER:
            return self._starts_rightly(node)
        if self._plan.unformatted and self.lost <= {node}:
            self.lost |= {node}
            self._cluster.host(node).disk.format({})
        return True

    def _starts_rightly(self, node: NodeName) -> bool:
        """Return whether to start a broker as it should be, or as one that may run beside it."""
        plan, cluster, draw = self._plan, self._cluster, self._draw
        own = cluster.kit.configurations[node]
        # On an empty disk any id is as good as another.
        has_id = META_PROPERTIES in cluster.host(node).disk.files
        if plan.other_ids and has_id and draw.random() < _SHARE:
            others = [one for one in cluster.brokers if one != cluster.broker_id(node)]
            self._try(node, replace(own, node_id=draw.choice(others)))
            return False
        if plan.ill_timed and isinstance(own, ZkConfiguration) and draw.random() < _SHARE:
            side_ns = own.controller_side_timeout_ns
            self._try(node, replace(own, broker_side_timeout_ns=side_ns))
            return False
        if not plan.old_software:
            return True
        is_old = draw.random() < _SHARE
        if isinstance(own, ZkConfiguration):
            if is_old:
                before = replace(own, inter_broker_protocol=InterBrokerProtocol.DIRECT)
                cluster.configure(node, before)
            return True
        if is_old:
            self._try(node, replace(own, level_max=max(1, cluster.kit.level - 1)))
        return not is_old

    def _try(self, node: NodeName, configuration: Configuration) -> None:
        """Start a node with a configuration that it must refuse; it is down afterwards."""
        cluster = self._cluster
        own = cluster.kit.configurations[node]
        cluster.configure(node, configuration)
        cluster.start_node(node)
        cluster.run(int(self._draw.random() * _OLD_S_MAX * S))
        if cluster.state(node) is not NodeState.DOWN:
            cluster.kill_node(node)
        cluster.configure(node, own)


def send_garbled_requests(cluster: SimulatedCluster, *, seed: int) -> None:
    """Have every broker that starts from now on garble a share of its requests."""
    draw = random.Random(f"garbled/{seed}")  # noqa: S311  # to be repeated, not kept secret
    for number in cluster.brokers:
        host = cluster.host(cluster.node_of(number))
        host.build = _Built(host.build, draw)


class _Built:
    """Makes garbling nodes."""

    def __init__(self, build: Any, draw: random.Random) -> None:
        self._build = build
        self._draw = draw

    def __call__(self) -> "_GarblingNode":
        return _GarblingNode(self._build(), self._draw)


class _GarblingNode:
    """A broker with its session, some of whose requests cannot be meant."""

    def __init__(self, node: SessionedNode, draw: random.Random) -> None:
        self._node = node
        self._draw = draw
        self.alarm = node.alarm
        self.inner = node.inner

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one event."""
        first = len(effects)
        self._node.handle(now, source, kind, message, effects)
        asked = [effect for effect in effects[first:] if effect[0] == SEND]
        for _, target, request in asked:
            can_be_garbled = isinstance(request, MetadataHeartbeatRequest | IsrChangeRequest)
            if can_be_garbled and self._draw.random() < _GARBLED_SHARE:
                effects.append((SEND, target, self._garbled(request)))

    def _garbled(self, request: Any) -> Any:
        request = replace(request, correlation=request.correlation + _BEYOND)
        one_way = self._draw.random() < 0.5  # noqa: PLR2004
        if isinstance(request, MetadataHeartbeatRequest):
            wrong = {"broker_id": -request.broker_id} if one_way else {"target_state": _NO_STATE}
            return replace(request, **wrong)
        topics = tuple(
            (topic, tuple(_without(one, request.broker_id, whole=one_way) for one in several))
            for topic, several in request.topics
        )
        return replace(request, topics=topics)


def _without(change: Any, leader: int, *, whole: bool) -> Any:
    """Return a change to an ISR without anybody (`whole`), or without its leader."""
    isr = tuple(one for one in change.isr if not whole and one != leader)
    return replace(change, isr=isr, incarnations=())
