"""The requests of clients to a broker, none of which it answers while it is fenced.

Requests that only the controller decides are passed on; reads wait until the metadata they would
show may be shown.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from clusters.node_port.effects import CLOSE, SEND, Effects
from clusters.reference.nodes.messages import client, control, data
from clusters.reference.nodes.replicas.replicas import Replicas
from clusters.reference.nodes.serving.fetch import Fetching, epoch_ends, listed
from clusters.reference.nodes.serving.forwarding import FORWARDED, ForController
from clusters.reference.nodes.serving.groups import CommitCodec, Groups
from clusters.reference.nodes.serving.produce import Producing
from clusters.reference.nodes.serving.producer_ids import ProducerIds
from clusters.reference.nodes.serving.reading import MetadataReads, api_versions, described
from clusters.reference.nodes.serving.visibility import Shown
from clusters.reference.nodes.situation import Situation

__all__ = ["Server"]

_ALLOCATE: Final = control.AllocateProducerIdsRequest.kind
_ALLOCATED: Final = control.AllocateProducerIdsResponse.kind

_Handler = Callable[[int, int, Any, Effects], None]
_SOURCES_MAX: Final = 10_000
"""The oldest is forgotten then: its connection is not closed when others are."""


class Server:
    """A broker's side towards its clients."""

    __slots__ = (
        "_forwarding",
        "_groups",
        "_handlers",
        "_metadata",
        "_producer_ids",
        "_replicas",
        "_situation",
        "clients",
        "fetching",
        "producing",
        "visibility",
    )

    def __init__(
        self,
        situation: Situation,
        replicas: Replicas,
        codec: CommitCodec,
        *,
        visibility: Shown,
        forwarding: ForController,
        producer_ids: ProducerIds,
    ) -> None:
        self._situation = situation
        self._replicas = replicas
        self._metadata = MetadataReads(situation)
        self._forwarding = forwarding
        self._producer_ids = producer_ids
        self.clients = _Clients()
        self.producing = Producing(situation, replicas)
        self.fetching = Fetching(situation, replicas)
        self.visibility = visibility
        self._groups = Groups(situation, replicas, self.producing, self._forwarding, codec)
        self._handlers = self._all_handlers()

    def request(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Answer a client of a broker that is not fenced; what is not known ends its connection."""
        handler = self._handlers.get(kind)
        if handler is None:
            effects.append((CLOSE, source))
        else:
            handler(now, source, message, effects)

    def negotiate(self, source: int, request: client.ApiVersionsRequest, effects: Effects) -> None:
        """Tell another broker what this one offers; its connection ends when that changes.

        It is no client: it need not wait for what this broker may not show yet.
        """
        self.clients.add(source)
        self._answer(source, request, effects)

    def answered(self, now: int, kind: int, response: Any, effects: Effects) -> None:
        """The controller answered something that was passed on."""
        if kind == _ALLOCATED:
            self._producer_ids.allocated(now, response, effects)
        elif kind - 1 in FORWARDED:
            self._forwarding.answered(now, response, effects)

    def unreachable(self, now: int, request: Any, effects: Effects) -> None:
        """The controller could not be asked."""
        if request.kind == _ALLOCATE:
            self._producer_ids.unreachable(now, request)
        elif request.kind in FORWARDED:
            self._forwarding.unreachable(request, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at all deadlines."""
        self.producing.tick(now, effects)
        self._replicas.fetches.tick(now, effects)
        self.visibility.tick(now, effects)
        self._forwarding.tick(now, effects)
        self._producer_ids.tick(now, effects)

    def shown(self, effects: Effects) -> None:
        """More of the metadata is shown, perhaps."""
        before, level = self._situation.offered_level, self.visibility.offered_level()
        self._situation.offered_level = level
        for source, request in self.visibility.ready():
            self._answer(source, request, effects)
        if level != before:
            self._situation.fetch_level = max(self._situation.fetch_level, level)
            # Who asked for this level, among others, has the controller's word on the way.
            waiting = self._forwarding.finish()
            self._close_own(effects)
            self.clients.close(effects, but=waiting)

    def close(self, effects: Effects) -> None:
        """Answer no client any more, also none of those that wait."""
        self._close_own(effects)
        self._forwarding.close(effects)

    def _close_own(self, effects: Effects) -> None:
        """Close who waits for this broker itself."""
        self.producing.close(effects)
        self._replicas.fetches.close_consumers(effects)
        self.visibility.close(effects)
        self._producer_ids.close(effects)

    def _all_handlers(self) -> Mapping[int, _Handler]:
        reads = (
            client.MetadataRequest,
            client.DescribeConfigsRequest,
            client.ApiVersionsRequest,
            # By the metadata a broker knows whether it coordinates groups.
            client.ListGroupsRequest,
        )
        return {
            **dict.fromkeys(sorted(FORWARDED), self._forwarding.forward),
            **{read.kind: self._read for read in reads},
            data.InitProducerIdRequest.kind: self._producer_ids.init,
            data.ListOffsetsRequest.kind: self._list_offsets,
            data.OffsetsForLeaderEpochRequest.kind: self._find_epoch_ends,
            client.FindCoordinatorRequest.kind: self._groups.find,
            client.OffsetCommitRequest.kind: self._groups.commit,
            client.OffsetFetchRequest.kind: self._groups.fetch,
        }

    def _read(self, now: int, source: int, request: Any, effects: Effects) -> None:
        if not self.visibility.waits(now, source, request, effects):
            self._answer(source, request, effects)

    def _answer(self, source: int, request: Any, effects: Effects) -> None:
        situation, image = self._situation, self.visibility.image
        response: Any
        if request.kind == client.MetadataRequest.kind:
            controller_id = self.visibility.controller_id
            response = self._metadata.answer(request, image, controller_id=controller_id)
        elif request.kind == client.DescribeConfigsRequest.kind:
            response = described(request, situation=situation, image=image)
        elif request.kind == client.ListGroupsRequest.kind:
            response = self._groups.listed(request)
        else:
            response = api_versions(request, situation=situation, image=image)
        effects.append((SEND, source, response))

    def _list_offsets(self, _now: int, source: int, request: Any, effects: Effects) -> None:
        leaders = self._replicas.leaders
        response = listed(request, leaders=leaders, situation=self._situation)
        effects.append((SEND, source, response))

    def _find_epoch_ends(self, _now: int, source: int, request: Any, effects: Effects) -> None:
        leaders = self._replicas.leaders
        response = epoch_ends(request, leaders=leaders, situation=self._situation)
        effects.append((SEND, source, response))


class _Clients:
    """The clients that a broker has answered, in the order in which they came first."""

    __slots__ = ("sources",)

    def __init__(self) -> None:
        self.sources: dict[int, None] = {}

    def add(self, source: int) -> None:
        """A client that is not among `sources`."""
        self.sources[source] = None
        if len(self.sources) > _SOURCES_MAX:
            del self.sources[next(iter(self.sources))]

    def close(self, effects: Effects, *, but: AbstractSet[int]) -> None:
        """End all connections but these, so that clients ask anew what is offered (KIP-778)."""
        effects.extend((CLOSE, source) for source in self.sources if source not in but)
        self.sources.clear()
