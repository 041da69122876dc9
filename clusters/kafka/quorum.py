"""The controller quorum as its leader describes it, and how its voters are changed (KIP-853).

Who votes, who looks on, and how far each has fetched the metadata log. A leader knows of another
replica where it fetches from. So what it says of one that was started again a moment ago may still
be of its predecessor: only what the leader appended later proves anything of the new one. An idle
leader appends a record every 500 ms.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from kio.schema.add_raft_voter.v0.request import AddRaftVoterRequest, Listener
from kio.schema.add_raft_voter.v0.response import AddRaftVoterResponse
from kio.schema.describe_quorum.v2.request import (
    DescribeQuorumRequest,
    PartitionData,
    TopicData,
)
from kio.schema.describe_quorum.v2.response import DescribeQuorumResponse, ReplicaState
from kio.schema.errors import ErrorCode
from kio.schema.remove_raft_voter.v0.request import RemoveRaftVoterRequest
from kio.schema.remove_raft_voter.v0.response import RemoveRaftVoterResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32, i32Timedelta, u16

from fencepost.clusters.kafka.admin_requests import Answered, Write, answer_of
from fencepost.clusters.kafka.multi_node_requests import ask
from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.talking import Address

_TIMEOUT_S: Final = 2.0
_DESCRIBE: Final = DescribeQuorumRequest(
    topics=(
        TopicData(
            topic_name=TopicName("__cluster_metadata"),
            partitions=(PartitionData(partition_index=i32(0)),),
        ),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumReplica:
    """A replica of the metadata log, by what the leader knows of it."""

    node_id: int
    directory_id: uuid.UUID | None
    log_end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class VotersView:
    """A quorum as its leader describes it."""

    leader_id: int
    voters: tuple[QuorumReplica, ...]
    """The leader among them. Of one node id there may be two: one has lost its disk."""
    observers: tuple[QuorumReplica, ...]

    @property
    def log_end_offset(self) -> int:
        """The log end offset of the leader itself."""
        ends = [one.log_end_offset for one in self.voters if one.node_id == self.leader_id]
        return max(ends, default=-1)


def voters_view(controllers: Mapping[NodeName, Address]) -> VotersView | None:
    """Return what the latest node that calls itself the leader says; None if no node does.

    From 3.9 on: earlier releases do not name directories.
    """
    answers = ask(controllers, _DESCRIBE, DescribeQuorumResponse, timeout_s=_TIMEOUT_S)
    described = [
        partition
        for answer in answers.values()
        for topic in answer.topics
        for partition in topic.partitions
        if answer.error_code is ErrorCode.none and partition.error_code is ErrorCode.none
    ]
    if not described:
        return None
    latest = max(described, key=lambda partition: partition.leader_epoch)
    return VotersView(
        leader_id=int(latest.leader_id),
        voters=tuple(map(_follower, latest.current_voters)),
        observers=tuple(map(_follower, latest.observers)),
    )


def add_voter(
    cluster_id: str,
    follower: QuorumReplica,
    *,
    listener: str,
    host: str,
    port: int,
    timeout_s: float,
) -> Write:
    """Make an observer that has caught up a voter, found at this address."""
    request = AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout=i32Timedelta.parse(timedelta(milliseconds=int(timeout_s * 1000))),
        voter_id=i32(follower.node_id),
        voter_directory_id=follower.directory_id,
        listeners=(Listener(name=listener, host=host, port=u16(port)),),
    )

    def read(response: AddRaftVoterResponse) -> Answered:
        return answer_of(response.error_code, response.error_message)

    return Write(request=request, response_type=AddRaftVoterResponse, answered=read)


def remove_voter(cluster_id: str, voter: QuorumReplica) -> Write:
    """Take the vote from this node on this disk."""
    request = RemoveRaftVoterRequest(
        cluster_id=cluster_id,
        voter_id=i32(voter.node_id),
        voter_directory_id=voter.directory_id,
    )

    def read(response: RemoveRaftVoterResponse) -> Answered:
        return answer_of(response.error_code, response.error_message)

    return Write(request=request, response_type=RemoveRaftVoterResponse, answered=read)


def _follower(state: ReplicaState) -> QuorumReplica:
    return QuorumReplica(
        node_id=int(state.replica_id),
        directory_id=state.replica_directory_id,
        log_end_offset=int(state.log_end_offset),
    )
