import random

import pytest

from fencepost.clusters.kafka_port import ClusterView, PartitionView
from fencepost.clusters.port import NodeName
from fencepost.clusters.stage import Stage
from fencepost.history.failure import HarnessError, SpecError
from fencepost.nemesis.targets import Scene, parse_target, resolve

NODES = tuple(
    map(
        NodeName,
        ("controller-1", "controller-2", "controller-3", "broker-1", "broker-2", "broker-3"),
    )
)
BROKERS = NODES[3:]
STAGE = Stage(nodes=NODES, keys=("t-0",))


def scene(*, leader: int | None = 2, isr: tuple[int, ...] = (2, 3)) -> Scene:
    partition = PartitionView(leader=leader, isr=isr, replicas=(1, 2, 3))
    return Scene(
        nodes=NODES,
        broker_ids={node: int(node[-1]) for node in BROKERS},
        view=ClusterView(
            time_ns=0,
            brokers=frozenset({1, 2, 3}),
            serving=frozenset({1, 2, 3}),
            partitions={"t-0": partition},
        ),
        active_controller=NODES[1],
    )


def hit(text: str, *, seed: int = 1, on: Scene | None = None) -> tuple[NodeName, ...]:
    target = parse_target(text, STAGE)
    return resolve(target, on or scene(), random.Random(seed))


def test_roles_are_resolved_against_the_metadata_of_the_moment() -> None:
    assert hit("leader of t-0") == ("broker-2",)
    assert hit("isr follower of t-0") == ("broker-3",)
    assert hit("active controller") == ("controller-2",)


@pytest.mark.parametrize(
    ("text", "count"),
    [("one broker", 1), ("minority of brokers", 1), ("majority of brokers", 2), ("all brokers", 3)],
)
def test_a_share_of_a_role_has_its_size_and_is_drawn_from_the_seed(text: str, count: int) -> None:
    drawn = [hit(text, seed=seed) for seed in range(30)]
    assert {len(nodes) for nodes in drawn} == {count}
    assert set().union(*drawn) == set(BROKERS)
    assert drawn == [hit(text, seed=seed) for seed in range(30)]


def test_a_role_that_nobody_has_just_now_is_said_with_what_was_seen() -> None:
    with pytest.raises(HarnessError, match=r"leader of t-0: no broker fits now \(isr \(2,\)\)"):
        hit("leader of t-0", on=scene(leader=None, isr=(2,)))
    with pytest.raises(HarnessError, match="isr follower of t-0: no broker fits now"):
        hit("isr follower of t-0", on=scene(isr=(2,)))


def test_a_target_that_cannot_exist_is_refused_with_the_forms_that_can() -> None:
    with pytest.raises(SpecError, match="'broker-7' is not a target here"):
        parse_target("broker-7", STAGE)
