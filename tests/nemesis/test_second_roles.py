"""Nodes that are broker and controller at once, as plays and mixes take them."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from clusters.kafka_conditions import CONDITIONS
from clusters.kafka_port import ClusterView, PartitionView
from clusters.port import NodeName, NodeRoles
from clusters.stage import Stage
from history.failure import HarnessError, SpecError
from nemesis.drawn_cuts import drawn_cut
from nemesis.messages import sent_by
from nemesis.mix import Mix
from nemesis.mix_spec import MixSpec
from nemesis.targets import Scene, parse_target, resolve
from nemesis.topology import cut_off, flows_of
from nemesis.verbs.kill import Kill
from nemesis.verbs.partition import parse_cut
from nemesis.verbs.restart import Restart

NODES = tuple(NodeName(f"broker-{number}") for number in (1, 2, 3))
IDS = {node: int(node[-1]) for node in NODES}
ALL = NodeRoles(second=dict.fromkeys(NODES, "controller"))
FIRST = NodeRoles(second={NODES[0]: "controller"})
VIEW = ClusterView(
    time_ns=0,
    brokers=frozenset(IDS.values()),
    serving=frozenset(IDS.values()),
    partitions={"t-0": PartitionView(leader=2, isr=(2, 1, 3), replicas=(1, 2, 3))},
)


def scene(roles: NodeRoles = ALL) -> Scene:
    return Scene(nodes=NODES, broker_ids=IDS, view=VIEW, active_controller=NODES[0], roles=roles)


def stage(roles: NodeRoles = ALL) -> Stage:
    return Stage(nodes=NODES, keys=("t-0",), broker_ids=(1, 2, 3), node_roles=roles)


def hit(text: str, roles: NodeRoles) -> tuple[NodeName, ...]:
    return resolve(parse_target(text, stage(roles)), scene(roles), random.Random(1))


def test_roles_come_in_the_order_of_starting() -> None:
    assert FIRST.of(NODES[0]) == ("controller", "broker")
    assert FIRST.names(NODES) == ("controller", "broker")
    assert FIRST.among(NODES, "controller") == NODES[:1]
    assert FIRST.among(NODES, "broker") == NODES


def test_controllers_are_the_brokers_that_vote() -> None:
    assert hit("all controllers", FIRST) == NODES[:1]
    assert hit("all controllers", ALL) == NODES
    assert hit("one controller", FIRST) == NODES[:1]
    with pytest.raises(SpecError, match="'one controller' is no target"):
        hit("one controller", NodeRoles())


def test_a_condition_on_a_controller_names_a_broker_that_votes() -> None:
    parse = CONDITIONS["active_controller"]
    assert parse("active_controller", "broker-1", stage(FIRST)).data() == {
        "active_controller": "broker-1"
    }
    with pytest.raises(SpecError, match=r"no such node: 'broker-2'; allowed: broker-1$"):
        parse("active_controller", "broker-2", stage(FIRST))


def test_messages_of_a_quorum_are_sent_where_three_brokers_vote() -> None:
    assert "Vote" in sent_by(NODES, ALL)
    assert "Vote" not in sent_by(NODES, FIRST)
    assert "BrokerHeartbeat" in sent_by(NODES, FIRST)
    assert "BrokerHeartbeat" not in sent_by(NODES)


def drawn_kills(
    down: dict[str, int], *, targets: tuple[str, ...], roles: NodeRoles
) -> Counter[int]:
    """Count the kills of a long run by the number of nodes that they take away at once."""
    spec = MixSpec(faults=("kill",), targets=targets, down=down, overlap=True)
    found: Counter[int] = Counter()
    for seed in range(20):
        mix = Mix(spec, random.Random(seed), ("t-0",))
        for tick in range(400):
            for step in mix.due(tick / 4, scene=scene(roles), impaired=frozenset()):
                if isinstance(step, Kill):
                    found[len(step.target.nodes)] += 1  # type: ignore[union-attr]
    return found


def test_a_node_that_is_down_counts_under_both_of_its_roles() -> None:
    brokers = ("all brokers",)
    assert set(drawn_kills({"broker": 3, "controller": 1}, targets=brokers, roles=ALL)) == {1}
    assert set(drawn_kills({"broker": 1, "controller": 3}, targets=brokers, roles=ALL)) == {1}
    assert max(drawn_kills({"broker": 3, "controller": 3}, targets=brokers, roles=ALL)) == 3
    # Two brokers do not vote.
    assert set(drawn_kills({"broker": 3, "controller": 0}, targets=brokers, roles=FIRST)) <= {1, 2}
    assert not drawn_kills({"broker": 3, "controller": 0}, targets=brokers, roles=ALL)


def test_a_roll_leaves_out_nodes_of_a_role_that_may_not_be_down() -> None:
    spec = MixSpec(faults=("roll",), down={"broker": 1, "controller": 0})
    rolled = set()
    for seed in range(10):
        mix = Mix(spec, random.Random(seed), ("t-0",))
        for tick in range(200):
            for step in mix.due(tick / 4, scene=scene(FIRST), impaired=frozenset()):
                assert isinstance(step, Restart)
                rolled.update(step.target.nodes)  # type: ignore[union-attr]
    assert rolled == set(NODES[1:])


@pytest.mark.parametrize("roles", [ALL, FIRST])
def test_drawn_cuts_can_be_made_whoever_votes(roles: NodeRoles) -> None:
    drawn = [drawn_cut(scene(roles), random.Random(seed)) for seed in range(200)]
    assert all(cut.flows and lost for cut, lost in drawn)


def test_groups_of_all_brokers_and_all_controllers_are_one_group_too_many() -> None:
    cut = parse_cut({"groups": ["brokers", "controllers"]}, stage())
    with pytest.raises(HarnessError, match="is in two groups"):
        flows_of(cut, scene(), random.Random(1))


def test_where_halves_tie_the_one_that_decides_stays() -> None:
    four = (*NODES, NodeName("broker-4"))
    halves = {(one, other) for one in four[:2] for other in four[2:]}
    flows = frozenset(halves | {(other, one) for one, other in halves})
    second = NodeRoles(second={four[2]: "controller"})
    assert cut_off(flows, four, second) == set(four[:2])
    assert cut_off(flows, four, replace(second, second={four[0]: "controller"})) == set(four[2:])
