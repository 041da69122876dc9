"""Looks at a simulated cluster: what its observer saw last."""

from collections.abc import Callable, Collection, Mapping
from operator import is_not
from typing import Final

from fencepost.clusters.observation import Observation, RuleCounts
from fencepost.clusters.port import NodeName, NodeState
from fencepost.clusters.reference.simulated.cluster import SimulatedCluster
from fencepost.harness.interpreter.observer import granted_count, whole_nodes
from fencepost.nemesis.targets import Scene

_S: Final = 1_000_000_000
_STEP_NS: Final = 10_000_000


class SimulatedLooks:
    """A `harness.interpreter.observer.Looks`."""

    def __init__(
        self,
        cluster: SimulatedCluster,
        *,
        acknowledged: Callable[[], int],
        rules: Mapping[str, RuleCounts],
        registrations: Callable[[NodeName], int] | None = None,
        topics: Collection[str] = (),
    ) -> None:
        """`rules`: the wire's, live. `registrations`: see `Looks`; None: the wire's count.

        `topics`: see `whole_nodes`.
        """
        self._topics = topics
        self._cluster = cluster
        self._acknowledged = acknowledged
        self._rules = rules
        self._registrations = registrations
        self._scene: Scene | None = None
        self._impaired: tuple[tuple[object, ...], Mapping[NodeName, NodeState], frozenset[NodeName]]
        self._impaired = ((), {}, frozenset())
        """The latest look: what was shown, the states of the nodes, and those not whole."""

    def latest(self) -> Observation:
        """Return the latest look, with the states of processes as they are now."""
        cluster = self._cluster
        return Observation(
            view=cluster.shown,
            active_controller=cluster.leader_now(),
            broker_ids=cluster.view_ids,
            states=cluster.states,
            acknowledged_count=self._acknowledged(),
            rules=self._rules,
            look_count=cluster.watch.ended_count,
        )

    def next_look(self, *, timeout_s: float) -> Observation:
        """Return a look that began after this call.

        Return the latest one if none ended within the bound.
        """
        cluster, watch = self._cluster, self._cluster.watch
        wanted = watch.begun_count + 1
        end_s = cluster.world.now_ns / _S + timeout_s
        while watch.ended_count < wanted and cluster.world.now_ns / _S < end_s:
            cluster.run(_STEP_NS)
        return self.latest()

    def scene(self) -> Scene:
        """Return the scene, by the latest look, against which targets are resolved."""
        view, active = self._cluster.shown, self._cluster.leader_now()
        scene = self._scene
        if scene is None or scene.view is not view or scene.active_controller != active:
            scene = self._scene = Scene(
                nodes=self._cluster.nodes,
                broker_ids=self._cluster.view_ids,
                view=view,
                active_controller=active,
                roles=self._cluster.node_roles,
            )
        return scene

    def impaired(self) -> frozenset[NodeName]:
        """Return the nodes that are not whole now."""
        cluster = self._cluster
        seen = cluster.shown_parts
        states = cluster.states
        before, was, impaired = self._impaired
        # A view shares with the one before what has not changed.
        if states != was or len(seen) != len(before) or any(map(is_not, seen, before)):
            impaired = frozenset(cluster.nodes) - whole_nodes(self.latest(), topics=self._topics)
            self._impaired = (seen, states, impaired)
        return impaired

    def registrations(self, broker: NodeName) -> int:
        """Return a number that grows with the registrations granted to this broker."""
        seen = self._cluster.kit.sight.latest_registration(broker)
        if seen is not None:
            return seen
        if self._registrations is None:
            return granted_count(self._rules, broker)
        return self._registrations(broker)
