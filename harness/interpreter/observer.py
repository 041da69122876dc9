"""One thread that looks at the cluster all the time, so that nothing else has to wait for a look.

A look asks a broker for metadata (up to a second or two while brokers are down), the host for each
process, and the quorum for its leader. The latest look is a value anyone may read.
"""

import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol, Self

from clusters.evolution import members_of
from clusters.observation import Observation
from clusters.port import NodeName, NodeState, Observable, View
from harness.interpreter.network import watch_name
from history.failure import HarnessError
from nemesis.targets import Scene
from nemesis.wire.status import WireStatus

__all__ = ["Looks", "Observer", "observed", "whole_nodes"]

_INTERVAL_S = 0.1
_QUORUM_EVERY = 5
"""The quorum is asked at every fifth look: describing it costs a connection of its own."""


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


class Observer:
    """A context manager: looks from entry to exit."""

    def __init__(
        self,
        cluster: Observable,
        *,
        acknowledged: Callable[[], int],
        wire: Callable[[], WireStatus],
    ) -> None:
        self._cluster = cluster
        self._acknowledged = acknowledged
        self._wire = wire
        self._ids = cluster.view_ids
        self._stop = threading.Event()
        self._looked = threading.Condition()
        self._look_count = 0
        self._controller: NodeName | None = None
        self._latest: tuple[View | None, NodeName | None] = (None, None)
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
        view, controller = self._latest
        return observed(
            view,
            active_controller=controller,
            broker_ids=self._ids,
            outsiders=frozenset(self._cluster.nodes) - frozenset(members_of(self._cluster)),
            states=self._states(),
            acknowledged_count=self._acknowledged(),
            wire=self._wire(),
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
        return Scene(
            nodes=members_of(self._cluster),
            broker_ids=self._ids,
            view=view,
            active_controller=controller,
        )

    def impaired(self) -> frozenset[NodeName]:
        """Return the members that are not whole now."""
        return frozenset(members_of(self._cluster)) - whole_nodes(self.latest())

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                view = self._cluster.view()
            except HarnessError:
                view = None  # no node answers: an observation, too
            if self._look_count % _QUORUM_EVERY == 0 or self._controller is None:
                self._controller = self._cluster.leader_now()
            with self._looked:
                self._latest = (view, self._controller)
                self._look_count += 1
                self._looked.notify_all()
            self._stop.wait(_INTERVAL_S)

    def _states(self) -> dict[NodeName, NodeState]:
        return {node: self._cluster.state(node) for node in self._cluster.nodes}


def observed(
    view: View | None,
    *,
    active_controller: NodeName | None,
    broker_ids: Mapping[NodeName, int],
    states: Mapping[NodeName, NodeState],
    acknowledged_count: int,
    wire: WireStatus,
    outsiders: frozenset[NodeName] = frozenset(),
    registrations: Mapping[NodeName, int] | None = None,
) -> Observation:
    """Return the latest view of a cluster, with the running counts as they are now.

    `registrations`: a number of each broker that grows with them; None: those that the wire counts.
    """
    rules = wire.rules
    return Observation(
        view=view,
        active_controller=active_controller,
        broker_ids=broker_ids,
        outsiders=outsiders,
        states=states,
        acknowledged_count=acknowledged_count,
        held_counts={name: rule.held_count for name, rule in rules.items()},
        matched_counts={name: rule.matched_count for name, rule in rules.items()},
        registrations=_granted(broker_ids, wire) if registrations is None else registrations,
    )


def _granted(brokers: Iterable[NodeName], wire: WireStatus) -> dict[NodeName, int]:
    counts = ((node, wire.rules.get(watch_name(node))) for node in brokers)
    return {node: rule.matched_count for node, rule in counts if rule is not None}


def whole_nodes(now: Observation) -> frozenset[NodeName]:
    """Return the nodes that run and, if they serve clients, take part and lack nothing."""
    if now.view is None:
        return frozenset()
    well = now.view.taking_part - now.view.lagging
    return frozenset(
        node
        for node, state in now.states.items()
        if state is NodeState.RUNNING
        and (node not in now.broker_ids or now.broker_ids[node] in well)
    )
