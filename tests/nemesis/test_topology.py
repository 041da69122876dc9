"""Every shape of partition: who still reaches whom, and who is left alone."""

import random
from itertools import combinations, permutations, product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.clusters.port import CLIENTS, NodeName
from fencepost.history.failure import HarnessError
from fencepost.nemesis.schedules.partitions import drawn_cut
from fencepost.nemesis.targets import NamedNodes, Scene
from fencepost.nemesis.topology import (
    Groups,
    Isolate,
    OneWay,
    Party,
    Shape,
    Shaped,
    cut_off,
    flows_of,
    joined_groups,
)

C1, C2, C3 = (NodeName(f"controller-{number}") for number in (1, 2, 3))
B1, B2, B3, B4, B5 = (NodeName(f"broker-{number}") for number in range(1, 6))
SMALL = (C1, B1, B2, B3)
LARGE = (C1, C2, C3, B1, B2, B3, B4, B5)


def scene(nodes: tuple[NodeName, ...]) -> Scene:
    return Scene(nodes=nodes, broker_ids={}, view=None, active_controller=None)


def party(*nodes: NodeName, clients: bool = False) -> Party:
    return Party(targets=(NamedNodes(nodes=nodes),) if nodes else (), clients=clients)


def cut(shape: object, nodes: tuple[NodeName, ...] = SMALL, seed: int = 1) -> frozenset:  # type: ignore[type-arg]
    return flows_of(shape, scene(nodes), random.Random(seed))  # type: ignore[arg-type]


def reached(node: NodeName, flows: frozenset, nodes: tuple[NodeName, ...]) -> set[NodeName]:  # type: ignore[type-arg]
    return {other for other in nodes if other != node and (node, other) not in flows}


def test_an_isolated_node_reaches_nobody_and_nobody_reaches_it() -> None:
    flows = cut(Isolate(party=party(B1)))
    assert flows == {(B1, o) for o in (C1, B2, B3)} | {(o, B1) for o in (C1, B2, B3)}
    assert cut_off(flows, SMALL) == {B1}


def test_groups_leave_who_is_in_none_alone() -> None:
    flows = cut(Groups(groups=(party(B1), party(C1))))
    assert flows == {(B1, C1), (C1, B1)}
    assert cut_off(flows, SMALL) == frozenset()


def test_clients_are_a_group_of_their_own_where_they_are_named() -> None:
    flows = cut(Groups(groups=(party(clients=True), party(B1, B2, B3))))
    assert flows == {f for b in (B1, B2, B3) for f in ((CLIENTS, b), (b, CLIENTS))}
    assert cut_off(flows, SMALL) == frozenset()


def test_one_way_cuts_what_is_sent_and_not_what_comes_back() -> None:
    assert cut(OneWay(sender=party(B1), receiver=party(C1))) == {(B1, C1)}


def test_a_node_in_two_groups_is_refused() -> None:
    with pytest.raises(HarnessError, match="broker-1 is in two groups"):
        cut(Groups(groups=(party(B1), party(B1, B2))))


@given(st.integers(0, 1000))
def test_halves_have_a_majority_that_stays_connected(seed: int) -> None:
    flows = cut(Shaped(shape=Shape.HALVES), LARGE, seed)
    assert len(cut_off(flows, LARGE)) == 4
    minority = cut(Shaped(shape=Shape.HALVES, among="brokers"), LARGE, seed)
    assert all(end in (B1, B2, B3, B4, B5) for flow in minority for end in flow)


@given(st.integers(0, 1000))
def test_in_a_majority_ring_each_reaches_a_majority_and_no_two_the_same(seed: int) -> None:
    flows = cut(Shaped(shape=Shape.MAJORITY_RING, among="brokers"), LARGE, seed)
    brokers = (B1, B2, B3, B4, B5)
    seen = [frozenset(reached(b, flows, brokers) | {b}) for b in brokers]
    assert all(len(one) == 3 for one in seen)
    assert len(set(seen)) == 5


@given(st.integers(0, 1000))
def test_a_bridge_is_the_only_node_that_reaches_both_halves(seed: int) -> None:
    flows = cut(Shaped(shape=Shape.BRIDGE, among="brokers"), LARGE, seed)
    brokers = (B1, B2, B3, B4, B5)
    bridges = [b for b in brokers if len(reached(b, flows, brokers)) == 4]
    assert len(bridges) == 1
    others = [b for b in brokers if b not in bridges]
    assert sorted(map(len, joined_groups(flows, others))) == [2, 2]


def test_of_groups_alike_the_one_of_the_first_node_stays() -> None:
    nodes = (B3, B1, B4, B2)
    flows = cut(Groups(groups=(party(B1, B2), party(B3, B4))), nodes)
    assert cut_off(flows, nodes) == {B1, B2}


@given(st.sets(st.tuples(*[st.sampled_from(LARGE)] * 2)), st.permutations(LARGE))
def test_nodes_are_in_one_group_if_each_reaches_the_other(
    flows: set[tuple[NodeName, NodeName]], nodes: list[NodeName]
) -> None:
    reach = {flow for flow in product(nodes, nodes) if flow[0] == flow[1] or flow not in flows}
    for via, one, other in product(nodes, repeat=3):
        if {(one, via), (via, other)} <= reach:
            reach.add((one, other))
    groups = joined_groups(flows, nodes)
    assert sorted(node for group in groups for node in group) == sorted(nodes)
    together = {flow for group in groups for flow in product(group, group)}
    assert together == {(a, b) for a, b in reach if (b, a) in reach}
    for earlier, later in combinations(groups, 2):
        assert not reach & {*product(earlier, later)}


def test_a_ring_of_three_is_refused_with_how_many_it_takes() -> None:
    with pytest.raises(HarnessError, match="a majority-ring needs 5 nodes or more"):
        cut(Shaped(shape=Shape.MAJORITY_RING, among="brokers"))


@given(st.integers(0, 10_000), st.sampled_from([SMALL, LARGE, (C1, B1)]))
@example(417, LARGE)
def test_a_drawn_partition_cuts_something_and_names_whom_it_takes_away(
    seed: int, nodes: tuple[NodeName, ...]
) -> None:
    cut, lost = drawn_cut(scene(nodes), random.Random(seed))
    assert cut.flows
    assert cut.flows <= set(permutations(nodes, 2))
    assert lost
    assert set(lost) < set(nodes)
    assert drawn_cut(scene(nodes), random.Random(seed)) == (cut, lost)


def test_a_drawn_cut_is_among_nodes_of_one_role() -> None:
    nodes = (NodeName("zookeeper-1"), *(NodeName(f"controller-{n}") for n in (1, 2, 3)))
    among = Scene(
        nodes=(*nodes, NodeName("broker-1")), broker_ids={}, view=None, active_controller=None
    )
    drawn = [drawn_cut(among, random.Random(seed)) for seed in range(100)]
    assert all(cut.flows and lost for cut, lost in drawn)
    assert any(set(lost) <= set(nodes[1:]) for _, lost in drawn)
