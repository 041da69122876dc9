"""The acts of an operator on a running cluster, each with its end seen.

The active controller is asked itself, unless another node is named. Through a broker a request
takes as long as the broker's own way to the controller, which a play may be holding.

A leader is moved in two steps: the replicas are put in another order, so that the wanted one is the
preferred leader, and then that one is elected. Kafka elects a replica only out of the ISR; one that
is not in it yet is asked for again until the bound.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kio.schema.errors import ErrorCode
from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsRequest
from kio.schema.list_partition_reassignments.v0.response import ListPartitionReassignmentsResponse
from kio.schema.metadata.v12.response import MetadataResponsePartition

from fencepost.clusters.kafka.admin_requests import (
    Answered,
    Write,
    alter_config,
    ask_write,
    create_topic,
    delete_topic,
    elect_preferred,
    reassign,
)
from fencepost.clusters.kafka.api_versions import NEWEST, ApiVersions, leader_epoch_of
from fencepost.clusters.kafka.connection import NoAnswerError, NodeConnection
from fencepost.clusters.kafka.observation import ask_metadata
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import HarnessError
from fencepost.history.operation import Outcome

_CLIENT_ID: Final = "fencepost-admin"
_ATTEMPT_S_MAX: Final = 5.0
"""The longest wait for one request: a controller paused or deposed does not answer."""
_POLL_S: Final = 0.02
_LOOK_S: Final = 1.0

# Errors that asking again cannot change.
_HOPELESS: Final = frozenset(
    {
        "CLUSTER_AUTHORIZATION_FAILED",
        "INVALID_CONFIG",
        "INVALID_PARTITIONS",
        "INVALID_REPLICA_ASSIGNMENT",
        "INVALID_REQUEST",
        "INVALID_TOPIC_EXCEPTION",
        "POLICY_VIOLATION",
        "UNSUPPORTED_VERSION",
    }
)

Nodes = Callable[[], Mapping[NodeName, Address]]
"""Nodes with their addresses, as they are at the time of asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """A partition as the broker that knows most of it shows it."""

    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]

    def __str__(self) -> str:
        return (
            f"leader {self.leader} in leader epoch {self.leader_epoch}, replicas "
            f"{list(self.replicas)}, isr {list(self.isr)}"
        )


class KafkaAdmin:
    """Asks for what `clusters.kafka_port.Administers` names. Safe to use from several threads.

    `leader`: the active controller, if there is one; `brokers`: those that run; `nodes`: all.
    """

    def __init__(
        self, *, leader: Nodes, brokers: Nodes, nodes: Nodes, api_versions: ApiVersions = NEWEST
    ) -> None:
        self._spoken = api_versions
        self._leader = leader
        self._brokers = brokers
        self._nodes = nodes

    def create_topic(self, topic: TopicSpec, *, via: NodeName | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) for the topic; returns once it was granted.

        Raises HarnessError with Kafka's words if it is refused or not granted in time.
        """
        attempt_s = min(within_s, _ATTEMPT_S_MAX)
        write = create_topic(topic, timeout_s=attempt_s, api_versions=self._spoken)
        what = f"create topic {topic.name}"
        deadline = time.monotonic() + within_s
        # After an attempt without a clear answer, an existing topic may well be ours.
        asked, answer = self.insist(
            write, what=what, via=via, deadline=deadline, done="TOPIC_ALREADY_EXISTS"
        )
        topic_id = f" with id {answer.topic_id}" if answer.topic_id else ""
        return f"{asked} created topic {topic.name}{topic_id}"

    def delete_topic(self, name: str, *, via: NodeName | None, within_s: float) -> str:
        """Ask `via` (None: the active controller) to delete it; returns once it was granted.

        Raises HarnessError with Kafka's words if it is refused or not granted in time.
        """
        attempt_s = min(within_s, _ATTEMPT_S_MAX)
        asked, _ = self.insist(
            delete_topic(name, timeout_s=attempt_s, api_versions=self._spoken),
            what=f"delete topic {name}",
            via=via,
            deadline=time.monotonic() + within_s,
            # After an attempt without a clear answer, it may well be gone.
            done="UNKNOWN_TOPIC_OR_PARTITION",
        )
        return f"{asked} deleted topic {name}"

    def alter_config(
        self, topic: str, settings: Mapping[str, str], *, via: NodeName | None, within_s: float
    ) -> str:
        """Set these settings of a topic; returns once it was granted."""
        said = ", ".join(f"{name}={value}" for name, value in settings.items())
        deadline = time.monotonic() + within_s
        write = alter_config(topic, settings)
        asked, _ = self.insist(write, what=f"set {said} of {topic}", via=via, deadline=deadline)
        return f"{asked} set {said} of {topic}"

    def reassign(
        self, key: str, replicas: tuple[int, ...], *, within_s: float, awaited: bool = True
    ) -> str:
        """Give the key these replicas, the preferred leader first.

        Returns once that is over, or granted if not `awaited`.
        """
        deadline = time.monotonic() + within_s
        before = self._look(key, deadline)
        self._move(key, replicas, deadline=deadline)
        if not awaited:
            return f"{key} was {before}; its move to {list(replicas)} was granted"
        after = self._await_move(key, replicas, deadline=deadline)
        return f"{key} was {before}; it is {after}"

    def move_leader(self, key: str, leader: int, *, within_s: float) -> str:
        """Make this broker the preferred replica and have it elected; returns once it leads."""
        deadline = time.monotonic() + within_s
        before = self._look(key, deadline)
        if leader not in before.replicas:
            raise HarnessError(f"broker {leader} cannot lead {key}: {before}")
        wanted = (leader, *(one for one in before.replicas if one != leader))
        if before.replicas != wanted:
            self._move(key, wanted, deadline=deadline)
            self._await_move(key, wanted, deadline=deadline)
        if before.leader == leader:
            return f"{key} was led by broker {leader} already: {before}"
        topic, partition = _parts(key)
        write = elect_preferred(topic, partition, timeout_s=_ATTEMPT_S_MAX)
        self.insist(write, what=f"elect {leader} for {key}", via=None, deadline=deadline)
        after = self._await(
            key, lambda seen: seen.leader == leader, f"to be led by broker {leader}", deadline
        )
        return f"{key} was {before}; it is {after}"

    def _move(self, key: str, replicas: tuple[int, ...], *, deadline: float) -> None:
        topic, partition = _parts(key)
        write = reassign(topic, partition, replicas, timeout_s=_ATTEMPT_S_MAX)
        self.insist(write, what=f"reassign {key}", via=None, deadline=deadline)

    def _await_move(self, key: str, replicas: tuple[int, ...], *, deadline: float) -> _Seen:
        while self._is_being_reassigned(key) is not False:
            if time.monotonic() > deadline:
                raise HarnessError(f"{key} was still being reassigned to {list(replicas)}")
            time.sleep(_POLL_S)
        return self._await(
            key, lambda seen: seen.replicas == replicas, f"on brokers {list(replicas)}", deadline
        )

    def insist(
        self,
        write: Write,
        *,
        what: str,
        via: NodeName | None,
        deadline: float,
        done: str | None = None,
    ) -> tuple[NodeName, Answered]:
        """Ask until it is granted, or was by an attempt before (`done`); who granted it.

        HarnessError if it is refused for good, or time is up.
        """
        problem, unsure = "no controller answered", False
        while (left_s := deadline - time.monotonic()) > 0:
            for node, address in self._chosen(via).items():
                answer = _asked(address, write, timeout_s=min(left_s, _ATTEMPT_S_MAX))
                if answer.outcome is Outcome.OK or (unsure and answer.error == done):
                    return node, answer
                problem = f"{node} answered {answer.error} {answer.message}".rstrip()
                if answer.error in _HOPELESS or answer.error == done:
                    raise HarnessError(f"cannot {what}: {problem}")
                unsure |= answer.outcome is Outcome.INFO
            time.sleep(_POLL_S)
        raise HarnessError(f"could not {what} in time: {problem}")

    def _chosen(self, via: NodeName | None) -> Mapping[NodeName, Address]:
        return self._leader() if via is None else {via: self._nodes()[via]}

    def _is_being_reassigned(self, key: str) -> bool | None:
        """Return what the active controller says; None if no controller answers."""
        topic, partition = _parts(key)
        request = ListPartitionReassignmentsRequest(topics=None)
        for address in self._leader().values():
            with NodeConnection(address, client_id=_CLIENT_ID) as node, suppress(NoAnswerError):
                response = node.ask(
                    request, ListPartitionReassignmentsResponse, timeout_s=_ATTEMPT_S_MAX
                )
                if response.error_code is ErrorCode.none:
                    return any(
                        str(one.name) == topic and part.partition_index == partition
                        for one in response.topics
                        for part in one.partitions
                    )
        return None

    def _await(
        self, key: str, holds: Callable[[_Seen], bool], claim: str, deadline: float
    ) -> _Seen:
        while True:
            seen = self._look(key, deadline)
            if holds(seen):
                return seen
            if time.monotonic() > deadline:
                raise HarnessError(f"{key} was not seen {claim} in time: {seen}")
            time.sleep(_POLL_S)

    def _look(self, key: str, deadline: float) -> _Seen:
        """The partition in the latest leader epoch, and of those by most brokers; HarnessError."""
        topic, partition = _parts(key)
        while True:
            answers = ask_metadata(self._brokers(), timeout_s=_LOOK_S, api_versions=self._spoken)
            shown = [
                _seen(part)
                for answer in answers.values()
                for one in answer.topics
                if one.name is not None and str(one.name) == topic
                for part in one.partitions
                if part.partition_index == partition
            ]
            if shown:
                return max(shown, key=lambda seen: (seen.leader_epoch, shown.count(seen)))
            if time.monotonic() > deadline:
                raise HarnessError(f"none of the {len(answers)} brokers that answered knows {key}")
            time.sleep(_POLL_S)


def _asked(address: Address, write: Write, *, timeout_s: float) -> Answered:
    with NodeConnection(address, client_id=_CLIENT_ID) as node:
        return ask_write(node, write, timeout_s=timeout_s)


def _seen(partition: MetadataResponsePartition) -> _Seen:
    return _Seen(
        leader=int(partition.leader_id),
        leader_epoch=leader_epoch_of(partition),
        replicas=tuple(map(int, partition.replica_nodes)),
        isr=tuple(map(int, partition.isr_nodes)),
    )


def _parts(key: str) -> tuple[str, int]:
    topic, _, partition = key.rpartition("-")
    return topic, int(partition)
