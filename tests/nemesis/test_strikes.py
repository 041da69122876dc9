"""Strikes wait for messages that a link carries, by the names that they have on that system."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.port import OWN_ROLES, NodeName, NodeRoles
from fencepost.nemesis.mix import Mix
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.targets import NamedNodes, Scene
from fencepost.nemesis.verbs.move_leader import MoveLeader
from fencepost.nemesis.verbs.rule import Lay
from fencepost.nemesis.window_kinds import asked_windows

B1, B2, B3, Z1 = map(NodeName, ("broker-1", "broker-2", "broker-3", "zookeeper-1"))
KEYS = ("t-0", "t-1", "t-2")


def scene(active: NodeName | None, *, leaders: tuple[int, ...], roles: NodeRoles) -> Scene:
    brokers = frozenset((1, 2, 3))
    view = ClusterView(
        time_ns=0,
        brokers=brokers,
        serving=brokers,
        partitions={
            key: PartitionView(leader=leader, isr=(1, 2, 3), replicas=(1, 2, 3))
            for key, leader in zip(KEYS, leaders, strict=True)
        },
    )
    return Scene(
        nodes=(Z1, B1, B2, B3),
        broker_ids={B1: 1, B2: 2, B3: 3},
        view=view,
        active_controller=active,
        roles=roles,
    )


def windows(
    kind: str,
    message: str,
    *,
    active: NodeName | None = B1,
    leaders: tuple[int, ...] = (1, 1, 2),
    roles: NodeRoles = OWN_ROLES,
    system: str = "kafka-zookeeper",
) -> Counter[tuple[str, str | None]]:
    """Return the messages and partitions of the windows that a hundred seeds draw first."""
    spec = MixSpec(faults=(kind,), system=system, gap_s=(0.0, 0.0), windows=(message,))
    found: Counter[tuple[str, str | None]] = Counter()
    for seed in range(100):
        mix = Mix(spec, random.Random(seed), KEYS)
        now = scene(active, leaders=leaders, roles=roles)
        steps = mix.due(1.0, scene=now, impaired=frozenset())
        (window,) = mix.windows
        found[window.kind.split()[0], window.key] += 1
        laid = {
            step.match.api for step in steps if isinstance(step, Lay) and step.name == window.rule
        }
        assert laid == {window.kind.split()[0]}
    return found


@pytest.mark.parametrize("kind", ["window", "ambush", "hold"])
def test_a_broker_that_is_the_controller_asks_itself_over_no_link(kind: str) -> None:
    assert {key for _, key in windows(kind, "AlterPartition")} == {"t-2"}
    assert {key for _, key in windows(kind, "AlterPartition", active=B2)} == {"t-0", "t-1"}


@pytest.mark.parametrize(
    ("message", "active", "roles"),
    [
        pytest.param("Fetch", B1, OWN_ROLES, id="to another broker"),
        pytest.param("AlterPartition", None, OWN_ROLES, id="nobody is known to be it"),
        pytest.param(
            "AlterPartition", B1, NodeRoles(second={B1: "controller"}), id="a link to itself"
        ),
    ],
)
def test_else_any_partition_is_drawn(
    message: str, active: NodeName | None, roles: NodeRoles
) -> None:
    assert {key for _, key in windows("window", message, active=active, roles=roles)} == {*KEYS}


def test_where_the_controller_leads_all_of_them_another_broker_leads_one_first() -> None:
    spec = MixSpec(
        faults=("window",), system="kafka-zookeeper", gap_s=(0.0, 0.0), windows=("AlterPartition",)
    )
    mix = Mix(spec, random.Random(1), KEYS)
    now = scene(B1, leaders=(1, 1, 1), roles=OWN_ROLES)
    steps = mix.due(1.0, scene=now, impaired=frozenset())
    (window,) = mix.windows
    moves = [step for step in steps if isinstance(step, MoveLeader)]
    laid = next(step for step in steps if isinstance(step, Lay) and step.name == window.rule)
    assert steps[0] == replace(moves[0], leaders={window.key: 2})
    assert laid.source.target == NamedNodes(nodes=(B2,))


def test_a_message_has_the_name_that_the_system_gives_it() -> None:
    found = windows("window", "AlterPartition", system="reference-zookeeper")
    assert {api for api, _ in found} == {"IsrChange"}
    spec = MixSpec(faults=("window",), system="reference-zookeeper", windows=("AlterPartition",))
    asked = asked_windows(spec, nodes=(Z1, B1, B2, B3))
    assert asked == ("IsrChange request", "IsrChange response")
