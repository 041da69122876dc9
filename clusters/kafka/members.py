"""Brokers and controllers that come into a running cluster, or leave it for good.

A broker is a member once it has registered and was unfenced. Before it goes, its replicas are moved
to others, as far as there are any that have none of that partition yet; then it is stopped, and its
registration taken back. A controller is a voter once it was added, by its disk's id, after it has
caught up as an observer; it goes by taking the vote from every disk that it has had (KIP-853).
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kio.schema.types import BrokerId
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from kio.schema.unregister_broker.v0.response import UnregisterBrokerResponse
from kio.static.primitive import i32

from fencepost.clusters.kafka.admin import KafkaAdmin, Nodes
from fencepost.clusters.kafka.admin_requests import Answered, Write, answer_of
from fencepost.clusters.kafka.configuration import KafkaNode, Listener
from fencepost.clusters.kafka.observation import quorum_log_ends
from fencepost.clusters.kafka.quorum import QuorumReplica, add_voter, remove_voter, voters_view
from fencepost.clusters.kafka_port import ClusterView, Role, role_of
from fencepost.clusters.port import NodeName, NodeState
from fencepost.history.failure import HarnessError

_ATTEMPT_S: Final = 5.0
_STOP_S: Final = 20.0
_POLL_S: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """The acts on the cluster's nodes that a change of members needs."""

    node: Callable[[NodeName], KafkaNode]
    state: Callable[[NodeName], NodeState]
    start: Callable[[NodeName], None]
    stop: Callable[[NodeName, float], bool]
    view: Callable[[], ClusterView]
    controllers: Nodes
    """The controllers that run."""


class Members:
    """The abilities `clusters.evolution.ChangesMembers` and `Follows`, for Kafka's clusters."""

    def __init__(
        self, first: Iterable[NodeName], *, cluster_id: str, admin: KafkaAdmin, acts: Acts
    ) -> None:
        self._members = set(first)
        self._cluster_id = cluster_id
        self._admin = admin
        self._acts = acts

    def now(self) -> frozenset[NodeName]:
        """The members, whether they run or not."""
        return frozenset(self._members)

    def add(self, node: NodeName, *, within_s: float) -> str:
        """Start it, and have it taken for a member; HarnessError if it is not in time."""
        deadline = time.monotonic() + within_s
        if node in self._members:
            raise HarnessError(f"{node} is a member of the cluster already")
        if self._acts.state(node) is NodeState.DOWN:
            self._acts.start(node)
        if role_of(node) is Role.BROKER:
            evidence = self._await_unfenced(node, deadline)
        else:
            evidence = self._add_voter(node, deadline)
        self._members.add(node)
        return evidence

    def remove(self, node: NodeName, *, within_s: float) -> str:
        """Take from it what it has, stop it, and have it forgotten."""
        deadline = time.monotonic() + within_s
        if role_of(node) is Role.BROKER:
            moved = self._drain(node, deadline)
            # From here on it is no loss that it is gone.
            self._members.discard(node)
            self._acts.stop(node, _STOP_S)
            self._unregister(node, deadline)
            return f"{node}: {moved} replicas moved, stopped, and unregistered"
        disks = self._remove_votes(node, deadline)
        self._members.discard(node)
        self._acts.stop(node, _STOP_S)
        return f"{node}: votes no more, on {disks} disks; stopped"

    def await_follower(self, controller: NodeName, *, within_s: float) -> str:
        """Wait until it has fetched, or leads, beyond what the log held at this call."""
        deadline = time.monotonic() + within_s
        node_id = self._acts.node(controller).node_id
        goal: int | None = None
        while True:
            leader, ends = quorum_log_ends(self._acts.controllers())
            if goal is None and leader in ends:
                goal = max(ends.values()) + 1
            if goal is not None and ends.get(node_id, -1) >= goal:
                return f"{controller} has the metadata log up to {ends[node_id]}; {leader} leads"
            if time.monotonic() > deadline:
                raise HarnessError(
                    f"{controller} did not catch up in time: it has {ends.get(node_id)} of {goal}"
                )
            time.sleep(_POLL_S)

    def _await_unfenced(self, node: NodeName, deadline: float) -> str:
        broker_id = self._acts.node(node).node_id
        while True:
            view = self._acts.view()
            if broker_id in view.brokers & view.serving:
                return f"{node}: registered and unfenced as broker {broker_id}"
            if self._acts.state(node) is NodeState.DOWN:
                raise HarnessError(f"{node} ended before it was a member")
            if time.monotonic() > deadline:
                raise HarnessError(f"{node} was not unfenced in time")
            time.sleep(_POLL_S)

    def _drain(self, node: NodeName, deadline: float) -> int:
        """Move its replicas; again, if others were made meanwhile. How many."""
        broker_id = self._acts.node(node).node_id
        count = 0
        while time.monotonic() < deadline:
            view = self._acts.view()
            others = [self._acts.node(one).node_id for one in self._members - {node}]
            moving = replacements(view, broker_id, sorted(view.brokers.intersection(others)))
            if not moving:
                return count
            for key, replicas in moving.items():
                self._admin.reassign(key, replicas, within_s=deadline - time.monotonic())
                count += 1
        raise HarnessError(f"{node} still had replicas when the time was up")

    def _unregister(self, node: NodeName, deadline: float) -> None:
        broker_id = self._acts.node(node).node_id
        self._admin.insist(
            _unregister(broker_id),
            what=f"unregister broker {broker_id}",
            via=None,
            deadline=deadline,
            done="BROKER_ID_NOT_REGISTERED",
        )

    def _add_voter(self, node: NodeName, deadline: float) -> str:
        observer = self._caught_up(node, deadline)
        own = self._acts.node(node)
        write = add_voter(
            self._cluster_id,
            observer,
            listener=Listener.CONTROLLER,
            host=own.host_as(Role.CONTROLLER),
            port=own.ports[Listener.CONTROLLER],
            timeout_s=_ATTEMPT_S,
        )
        asked, _ = self._admin.insist(
            write, what=f"add voter {node}", via=None, deadline=deadline, done="DUPLICATE_VOTER"
        )
        return f"{asked} added {node} as a voter, on disk {observer.directory_id}"

    def _caught_up(self, node: NodeName, deadline: float) -> QuorumReplica:
        """The node as an observer that has fetched what the leader appended after its start."""
        node_id = self._acts.node(node).node_id
        goal: int | None = None
        while True:
            seen = voters_view(self._acts.controllers())
            if seen is not None:
                goal = seen.log_end_offset + 1 if goal is None else goal
                for one in seen.observers:
                    if one.node_id == node_id and one.log_end_offset >= goal:
                        return one
            if time.monotonic() > deadline:
                raise HarnessError(f"{node} was not seen to have caught up as an observer in time")
            time.sleep(_POLL_S)

    def _remove_votes(self, node: NodeName, deadline: float) -> int:
        """Remove the node's votes, whatever disks it has had; return how many were removed."""
        node_id = self._acts.node(node).node_id
        count = 0
        while time.monotonic() < deadline:
            seen = voters_view(self._acts.controllers())
            if seen is None:
                time.sleep(_POLL_S)
                continue
            votes = [one for one in seen.voters if one.node_id == node_id]
            if not votes:
                return count
            self._admin.insist(
                remove_voter(self._cluster_id, votes[0]),
                what=f"remove voter {node}",
                via=None,
                deadline=deadline,
                done="VOTER_NOT_FOUND",
            )
            count += 1
        raise HarnessError(f"{node} still had a vote when the time was up")


def replacements(
    view: ClusterView, leaving: int, others: Sequence[int]
) -> Mapping[str, tuple[int, ...]]:
    """The keys that the leaving broker has a replica of, with the replicas that each gets.

    The one that has the fewest takes its place; where every other has one already, one is saved.
    """
    load = dict.fromkeys(others, 0)
    for partition in view.partitions.values():
        for replica in partition.replicas:
            if replica in load:
                load[replica] += 1
    moving: dict[str, tuple[int, ...]] = {}
    for key, partition in sorted(view.partitions.items()):
        if leaving not in partition.replicas:
            continue
        free = [broker for broker in others if broker not in partition.replicas]
        heir = min(free, key=lambda broker: (load[broker], broker), default=None)
        if heir is not None:
            load[heir] += 1
        replicas = [heir if one == leaving else one for one in partition.replicas]
        moving[key] = tuple(one for one in replicas if one is not None)
    return moving


def _unregister(broker_id: int) -> Write:
    def read(response: UnregisterBrokerResponse) -> Answered:
        return answer_of(response.error_code, response.error_message)

    return Write(
        request=UnregisterBrokerRequest(broker_id=BrokerId(i32(broker_id))),
        response_type=UnregisterBrokerResponse,
        answered=read,
    )
