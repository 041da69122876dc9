"""Offsets of consumer groups: records of the internal topic, kept by whoever leads it.

A commit is one record, acknowledged as acks=all is, so it survives its leader. A leader answers
reads from what is below its high watermark, and from nothing before that has reached the start
of its leader epoch: every commit that was acknowledged before is below it. Membership of groups is
not kept: consumers assign partitions themselves.
"""

from typing import Any, Final, Protocol

from fencepost.clusters.node_port.effects import SEND, Effects
from fencepost.clusters.node_port.storage import Batch, PartitionKey
from fencepost.clusters.reference.nodes.configuration import MS
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.messages.client import (
    GROUP_STATE,
    GROUP_TYPE,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from fencepost.clusters.reference.nodes.messages.control import CreateTopicsRequest, NewTopic
from fencepost.clusters.reference.nodes.replicas.leader import Leader
from fencepost.clusters.reference.nodes.replicas.replicas import Replicas
from fencepost.clusters.reference.nodes.replicas.waiting import PendingProduce
from fencepost.clusters.reference.nodes.serving.forwarding import ForController
from fencepost.clusters.reference.nodes.serving.produce import Producing
from fencepost.clusters.reference.nodes.situation import Situation

OFFSETS_TOPIC: Final = "__consumer_offsets"
Commit = tuple[str, tuple[tuple[str, int, int, int, str], ...]]
"""(group, ((topic name, partition, offset, leader epoch or -1, metadata), …))."""


_REPLICAS_MAX: Final = 3
_COMMIT_TIMEOUT_NS: Final = 5_000 * MS
"""offsets.commit.timeout.ms."""
_CREATE_APART_NS: Final = 1_000 * MS

_NONE: Final = int(Error.NONE)
_NOT_COORDINATOR: Final = int(Error.NOT_COORDINATOR)
_LOADING: Final = int(Error.COORDINATOR_LOAD_IN_PROGRESS)
_NO_TRANSACTIONS: Final = int(Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
_NOT_AVAILABLE: Final = int(Error.COORDINATOR_NOT_AVAILABLE)

_Place = tuple[str, int]
_Position = tuple[int, int, str]


class CommitCodec(Protocol):
    """The coding of a commit as the payload of a batch of one record."""

    def encode(self, commit: Commit) -> Any:
        """The payload."""

    def decode(self, payload: Any) -> Commit:
        """The commit in it."""


class CommitValues:
    """Payloads are tuples of values, as everywhere in the simulator."""

    def encode(self, commit: Commit) -> Any:
        """A batch of one value."""
        return (commit,)

    def decode(self, payload: Any) -> Commit:
        """Return the value decoded."""
        commit: Commit = payload[0]
        return commit


class GroupOffsets:
    """A broker's part in keeping offsets."""

    __slots__ = (
        "_codec",
        "_create_due_ns",
        "_forwarding",
        "_leader",
        "_leaders",
        "_positions",
        "_producing",
        "_replayed",
        "_situation",
    )

    def __init__(
        self,
        situation: Situation,
        replicas: Replicas,
        producing: Producing,
        forwarding: ForController,
        codec: CommitCodec,
    ) -> None:
        self._situation = situation
        self._leaders = replicas.leaders
        self._producing = producing
        self._forwarding = forwarding
        self._codec = codec
        self._create_due_ns = 0
        self._leader: Leader | None = None
        """The leader whose log is replayed into the positions."""
        self._replayed = 0
        """The number of its batches that are replayed."""
        self._positions: dict[str, dict[_Place, _Position]] = {}
        """(offset, leader epoch, metadata) by group, and by topic name and partition."""

    def prepare(self, now: int, request: FindCoordinatorRequest, effects: Effects) -> None:
        """Have the offsets' topic created when a client first looks for its leader."""
        if not request.transactional and _key(self._situation.image) is None:
            self._create(now, effects)

    def found(
        self, request: FindCoordinatorRequest, image: MetadataImage
    ) -> FindCoordinatorResponse:
        """Return who leads the offsets by this image.

        No node coordinates transactions. After other errors librdkafka asks again for ever; all
        clients take this one for final.
        """
        found: tuple[int, int, str, int] = (_NO_TRANSACTIONS, -1, "", -1)
        if not request.transactional:
            key = _key(image)
            leader_id = -1 if key is None else image.partitions[key].leader
            known = image.brokers.get(leader_id)
            if known is None or known.fenced or not known.listeners:
                found = (_NOT_AVAILABLE, -1, "", -1)
            else:
                found = (_NONE, leader_id, known.listeners[0][1], known.listeners[0][2])
        groups = tuple((group, *found) for group in request.groups)
        return FindCoordinatorResponse(request.correlation, groups)

    def commit(self, now: int, source: int, request: OffsetCommitRequest, effects: Effects) -> None:
        """Append a commit; it is answered once it is committed itself."""
        leader, error = self._coordinator()
        if leader is None or error:
            offsets = tuple((topic, partition, error) for topic, partition, *_ in request.offsets)
            effects.append((SEND, source, OffsetCommitResponse(request.correlation, offsets)))
            return
        payload = self._codec.encode((request.group, request.offsets))
        pending = PendingProduce(
            source, request.correlation, now + _COMMIT_TIMEOUT_NS, [], commit=request
        )
        batch = Batch(-1, -1, 1, -1, -1, -1, payload)
        self._producing.commit(now, leader, batch, pending, effects)

    def fetch(self, _now: int, source: int, request: OffsetFetchRequest, effects: Effects) -> None:
        """Answer the committed offsets of a group."""
        leader, error = self._coordinator()
        if leader is None or error:
            effects.append((SEND, source, OffsetFetchResponse(request.correlation, error)))
            return
        self._replay(leader)
        positions = self._positions.get(request.group, {})
        wanted = sorted(positions) if request.partitions is None else request.partitions
        unknown = (-1, -1, "")
        offsets = tuple((*place, *positions.get(place, unknown), _NONE) for place in wanted)
        effects.append((SEND, source, OffsetFetchResponse(request.correlation, _NONE, offsets)))

    def listed(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """Return the groups with committed offsets; none if another broker coordinates them."""
        leader, error = self._coordinator()
        if leader is None:
            return ListGroupsResponse(request.correlation, _NONE)
        if error:
            return ListGroupsResponse(request.correlation, error)
        self._replay(leader)
        is_wanted = _allows(request.states, GROUP_STATE) and _allows(request.types, GROUP_TYPE)
        groups = tuple(sorted(self._positions)) if is_wanted else ()
        return ListGroupsResponse(request.correlation, _NONE, groups)

    def _coordinator(self) -> tuple[Leader | None, int]:
        key = _key(self._situation.image)
        leader = None if key is None else self._leaders.get(key)
        if leader is None:
            return None, _NOT_COORDINATOR
        return leader, _NONE if leader.log.high_watermark >= leader.epoch_start else _LOADING

    def _replay(self, leader: Leader) -> None:
        if self._leader is not leader:
            self._leader, self._replayed = leader, 0
            self._positions = {}
        log = leader.log
        while self._replayed < len(log.batches):
            batch = log.batches[self._replayed]
            if batch.end_offset > log.high_watermark:
                return
            group, offsets = self._codec.decode(batch.payload)
            positions = self._positions.setdefault(group, {})
            for topic, partition, offset, epoch, words in offsets:
                positions[topic, partition] = (offset, epoch, words)
            self._replayed += 1

    def _create(self, now: int, effects: Effects) -> None:
        if now < self._create_due_ns:
            return
        self._create_due_ns = now + _CREATE_APART_NS
        brokers = sum(not one.fenced for one in self._situation.image.brokers.values())
        topic = NewTopic(OFFSETS_TOPIC, 1, min(_REPLICAS_MAX, max(brokers, 1)))
        timeout_ns = self._situation.configuration.request_timeout_ns
        self._forwarding.forward(now, None, CreateTopicsRequest(0, (topic,), timeout_ns), effects)


def _key(image: MetadataImage) -> PartitionKey | None:
    """Return the partition of the offsets; None before it exists."""
    topic_id = image.topics.get(OFFSETS_TOPIC)
    key = None if topic_id is None else (topic_id, 0)
    return key if key in image.partitions else None


def _allows(wanted: tuple[str, ...], found: str) -> bool:
    """Return whether a filter takes what was found: an empty one takes all, and case is ignored."""
    return not wanted or found.lower() in (one.lower() for one in wanted)
