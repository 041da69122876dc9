"""The faults that a mix would draw, as far as the seed alone says which.

The kinds, their order and all that each draws are those of a run with this seed. The cluster says
when it is whole again, which node has a role, and whether a window opens. Here every fault is over
when it is healed, each partition is led by its first replica, and whatever a play awaits comes at
once.
"""

from collections.abc import Iterator
from typing import Final

from clusters.systems import system_of
from harness.scenario.mix import seeded_mix
from harness.scenario.scenario import Scenario
from nemesis.targets import Scene
from nemesis.verbs.step import Step

__all__ = ["projected"]

_TICK_S: Final = 0.05


def projected(scenario: Scenario, seed: int) -> Iterator[tuple[float, Step]]:
    """Yield the steps with the earliest times, in seconds, at which they are due."""
    if scenario.mix is None:
        return
    mix, scene = seeded_mix(scenario.mix, seed=seed, keys=scenario.keys), _scene(scenario)
    for tick in range(1, int(scenario.time_limit_s / _TICK_S)):
        now_s = tick * _TICK_S
        for step in mix.due(now_s, scene=scene, impaired=frozenset()):
            yield now_s, step


def _scene(scenario: Scenario) -> Scene:
    """Return the cluster when nothing has happened to it yet."""
    spec = scenario.cluster
    members = tuple(node for node in spec.nodes if node not in spec.spares)
    ids = {node: shown for node, shown in spec.view_ids.items() if node in members}
    leads = system_of(spec).led_by or spec.roles[0].name
    return Scene(
        nodes=members,
        broker_ids=ids,
        roles=spec.node_roles,
        view=system_of(spec).first_view(tuple(ids.values()), scenario.topics),
        active_controller=spec.node_roles.among(members, leads)[0],
    )
