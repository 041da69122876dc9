"""One thread that looks at the cluster all the time, so that nothing else has to wait for a look.

A look asks a broker for metadata (up to a second or two while brokers are down), the host for each
process, and the quorum for its leader. The latest look is a value anyone may read.
"""

import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Protocol, Self

from fencepost.clusters.abilities import roles_in
from fencepost.clusters.evolution import members_of
from fencepost.clusters.kafka_conditions import LogEnd, Registered
from fencepost.clusters.kafka_port import BrokersView, LogEnds, Registers
from fencepost.clusters.observation import Condition, Observation, RuleCounts
from fencepost.clusters.port import Cluster, NodeName, NodeState, Observable, SystemView
from fencepost.harness.interpreter.network import watch_name
from fencepost.history.failure import HarnessError
from fencepost.nemesis.targets import Scene
from fencepost.nemesis.wire.status import WireStatus

_INTERVAL_S = 0.1
_QUORUM_EVERY = 5
"""The quorum is asked at every fifth look: describing it costs a connection of its own."""
_OWN = "__"
"""The beginning of the names of Kafka's own topics."""
_NAMED_MAX = 4
"""The number of causes named in one message; the rest is counted."""


class Looks(Protocol):
    """The port through which an interpreter looks at the cluster."""

    def latest(self) -> Observation:
        """Return the latest look, with the states of processes as they are now."""

    def next_look(self, *, timeout_s: float) -> Observation:
        """Return a look that began after this call.

        Return the latest one if none ended within the bound.
        """

    def scene(self) -> Scene:
        """Return the scene, by the latest look, against which targets are resolved."""

    def impaired(self) -> frozenset[NodeName]:
        """Return the members that are not whole now."""

    def registrations(self, broker: NodeName) -> int:
        """Return a number that grows with the registrations granted to this broker."""


class Observer:
    """A context manager: looks from entry to exit."""

    def __init__(
        self,
        cluster: Observable,
        *,
        acknowledged: Callable[[], int],
        wire: Callable[[], WireStatus],
        topics: Collection[str] = (),
    ) -> None:
        """`topics`: see `whole_nodes`."""
        self._cluster = cluster
        self._topics = topics
        self._acknowledged = acknowledged
        self._wire = wire
        self._stop = threading.Event()
        self._looked = threading.Condition()
        self._look_count = 0
        self._controller: NodeName | None = None
        self._latest: tuple[SystemView | None, NodeName | None] = (None, None)
        """The view of the last look, and the active controller at that time."""
        self._looker = threading.Thread(target=self._watch, name="observer", daemon=True)

    def __enter__(self) -> Self:
        self._looker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._looker.join(timeout=10)

    def latest(self) -> Observation:
        """Return the latest look, with the states of processes as they are now."""
        with self._looked:
            (view, controller), look_count = self._latest, self._look_count
        states = {node: self._cluster.state(node) for node in self._cluster.nodes}
        fell = controller is not None and states.get(controller) is NodeState.DOWN
        return Observation(
            view=view,
            active_controller=None if fell else controller,
            broker_ids=self._cluster.view_ids,
            outsiders=frozenset(self._cluster.nodes) - frozenset(members_of(self._cluster)),
            states=states,
            acknowledged_count=self._acknowledged(),
            rules=self._wire().rules,
            look_count=look_count,
        )

    def next_look(self, *, timeout_s: float) -> Observation:
        """Return a look that began after this call.

        Return the latest one if none ended within the bound.
        """
        with self._looked:
            wanted = self._look_count + 2  # the one under way may have begun before
            self._looked.wait_for(lambda: self._look_count >= wanted, timeout=timeout_s)
        return self.latest()

    def scene(self) -> Scene:
        """Return the scene, by the latest look, against which targets are resolved."""
        view, controller = self._latest
        cluster = self._cluster
        down = (node for node in cluster.nodes if cluster.state(node) is NodeState.DOWN)
        return Scene(
            nodes=members_of(self._cluster),
            broker_ids=self._cluster.view_ids,
            view=view,
            active_controller=controller,
            down=frozenset(down),
            roles=roles_in(cluster),
        )

    def impaired(self) -> frozenset[NodeName]:
        """Return the members that are not whole now."""
        return frozenset(members_of(self._cluster)) - whole_nodes(
            self.latest(), topics=self._topics
        )

    def registrations(self, broker: NodeName) -> int:
        """Return a number that grows with the registrations of this broker that were seen."""
        granted = granted_count(self._wire().rules, broker)
        if isinstance(self._cluster, Registers):  # a migration ends what its znodes tell
            return self._cluster.latest_registration(broker) + granted
        return granted

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                view = self._cluster.view()
            except HarnessError:
                view = None  # no node answers: an observation, too
            if self._look_count % _QUORUM_EVERY == 0 or self._is_leaderless():
                self._controller = self._cluster.leader_now()
            with self._looked:
                self._latest = (view, self._controller)
                self._look_count += 1
                self._looked.notify_all()
            self._stop.wait(_INTERVAL_S)

    def _is_leaderless(self) -> bool:
        known = self._controller
        return known is None or self._cluster.state(known) is NodeState.DOWN


def granted_count(rules: Mapping[str, RuleCounts], broker: NodeName) -> int:
    """Return the number of registrations granted to this broker, as the wire counts them."""
    rule = rules.get(watch_name(broker))
    return 0 if rule is None else rule.matched_count


def looked_up(
    now: Observation, condition: Condition, *, looks: Looks, cluster: Cluster
) -> Observation:
    """Return the observation, with what is looked up for this condition alone."""
    if isinstance(condition, Registered):
        count = looks.registrations(condition.node)
        return replace(now, registrations={condition.node: count})
    if isinstance(condition, LogEnd):
        assert isinstance(cluster, LogEnds)
        end = cluster.log_end(condition.node, condition.key)
        if end is not None:
            return replace(now, log_ends={(condition.key, condition.node): end})
    return now


def whole_nodes(now: Observation, *, topics: Collection[str] = ()) -> frozenset[NodeName]:
    """Return the nodes that run and, if they serve clients, take part and lack nothing.

    `topics`: those that count, besides the system's own; none stated: all. There are always some
    that are about to be made or deleted where a workload does nothing else, and no record of theirs
    can be lost.
    """
    view = now.view
    if view is None:
        return frozenset()
    lagging: frozenset[int] = view.lagging
    if topics and isinstance(view, BrokersView):
        # What is no replica, as a server of an ensemble, may lag as well.
        lagging = lagging - _out_of_isrs(view, lambda _: True) | _out_of_isrs(
            view, lambda topic: topic in topics or topic.startswith(_OWN)
        )
    well = view.taking_part - lagging
    return frozenset(
        node
        for node, state in now.states.items()
        if state is NodeState.RUNNING
        and (node not in now.broker_ids or now.broker_ids[node] in well)
    )


def _out_of_isrs(view: BrokersView, counts: Callable[[str], bool]) -> frozenset[int]:
    """Return the brokers that have a replica, of a topic that counts, out of its ISR."""
    return frozenset(
        replica
        for key, one in view.partitions.items()
        if counts(key.rpartition("-")[0])
        for replica in one.replicas
        if replica not in one.isr
    )


def missing_in(now: Observation) -> str:
    """Return, in words, what keeps the cluster from being whole."""
    if now.view is None:
        return "no node that serves clients answers"
    found: list[str] = [
        f"{node} is {state}"
        for node, state in now.states.items()
        if state != "running" and node not in now.outsiders
    ]
    found += [
        f"{node} takes no part or does not answer"
        for node, member in now.broker_ids.items()
        if member not in now.view.taking_part and node not in now.outsiders
    ]
    found += now.view.incomplete
    more = f"; and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
    return "; ".join(found[:_NAMED_MAX]) + more
