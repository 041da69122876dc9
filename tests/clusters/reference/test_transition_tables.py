"""The tables of transitions as graphs: no state is out of reach, and none is a trap."""

from collections.abc import Mapping
from enum import Enum
from itertools import pairwise
from typing import Any

import networkx as nx
import pytest
from tours import machine, tour

from fencepost.clusters.protocol.broker_states import BrokerState
from fencepost.clusters.reference.nodes.life_cycle_transitions import TRANSITIONS as OF_BROKERS
from fencepost.clusters.reference.nodes.quorum.transitions import TRANSITIONS as OF_VOTERS
from fencepost.clusters.reference.nodes.quorum.transitions import VoterState
from fencepost.clusters.reference.zk.life_cycle_transitions import TRANSITIONS as OF_ZK_BROKERS

TABLES = pytest.mark.parametrize(
    ("table", "start"),
    [
        pytest.param(OF_BROKERS, BrokerState.NOT_RUNNING, id="broker"),
        pytest.param(OF_ZK_BROKERS, BrokerState.NOT_RUNNING, id="broker on ZooKeeper"),
        pytest.param(OF_VOTERS, VoterState.UNATTACHED, id="voter"),
    ],
)
Table = Mapping[tuple[Any, Enum], Any]


@TABLES
def test_every_state_is_reached_and_every_one_leads_back_to_the_start(
    table: Table, start: Enum
) -> None:
    """A broker's start is its end, too; a voter without a leader can come to have one."""
    graph = machine(table)
    assert set(graph) == set(type(start))
    assert nx.descendants(graph, start) | {start} == set(graph)
    assert nx.ancestors(graph, start) | {start} == set(graph)


@TABLES
def test_every_trigger_moves_something(table: Table, start: Enum) -> None:
    events = {event for _, event in table}
    assert events == set(type(next(iter(events)))), start


@TABLES
def test_a_tour_is_a_closed_way_that_takes_every_transition(table: Table, start: Enum) -> None:
    way = list(tour(table, start))
    assert way[0][0] is way[-1][2] is start
    assert all(before[2] is after[0] for before, after in pairwise(way))
    assert {(old, event): new for old, event, new in way} == table
