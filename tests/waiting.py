"""Waits of tests for what real nodes do, within a bound; and how not to wait for their end."""

import time
from collections.abc import Callable
from typing import Protocol

from fencepost.clusters.port import NodeName
from fencepost.clusters.processes.cluster import ProcessCluster
from fencepost.history.failure import HarnessError


def until(claim: Callable[[], bool], *, timeout_s: float = 60.0, every_s: float = 0.005) -> bool:
    """Wait for a claim to come true; False if it has not within the bound.

    A claim that raises HarnessError has not come true: a node may be too busy to answer. The last
    one is raised.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            if claim():
                return True
        except HarnessError:
            if time.monotonic() > deadline:
                raise
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)


class Led(Protocol):
    """A cluster of which one node leads."""

    def leader_now(self) -> NodeName | None:
        """Return the node that leads; None if none is known to."""


def leading(cluster: Led) -> NodeName:
    """Return the leader, once there is one: nodes that stood still may elect another at any time.

    Raises AssertionError if none leads within a minute.
    """
    found: list[NodeName] = []

    def leads() -> bool:
        found.extend(filter(None, [cluster.leader_now()]))
        return bool(found)

    assert until(leads)
    return found[0]


def kill_all(cluster: ProcessCluster) -> None:
    """Kill every node: a cluster that a test is done with need not take its leave."""
    for node in cluster.nodes:
        cluster.kill_node(node)
