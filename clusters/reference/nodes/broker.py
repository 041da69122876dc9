"""A broker of either generation: its start and end, its replicas, and what it answers.

Two ports tell the generations apart: how it registers and hears what it is to do (`Registrar`), and
how changes of ISRs are proposed (`IsrProposals`). `quorum_broker` and `zk.broker` put one together.

Events are branched by how frequent they are. What a fenced broker does not answer is refused here,
in one place.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

from fencepost.clusters.node_port.alarm import Alarm
from fencepost.clusters.node_port.effects import (
    CLOSE,
    EXIT,
    RECOVER,
    RECOVERED,
    START,
    STOP,
    SYNCED,
    TICK,
    UNREACHABLE,
    WRITE,
    Effects,
)
from fencepost.clusters.node_port.storage import CLEAN_STOP, Contents, FileName
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.messages import client, data
from fencepost.clusters.reference.nodes.replicas.replicas import Replicas
from fencepost.clusters.reference.nodes.serving.server import Server
from fencepost.clusters.reference.nodes.situation import Situation

_FETCH: Final = data.FetchRequest.kind
_FETCHED: Final = data.FetchResponse.kind
_VERSIONS: Final = client.ApiVersionsRequest.kind
_PRODUCE: Final = data.ProduceRequest.kind
_READS: Final = frozenset(
    {client.MetadataRequest.kind, client.DescribeConfigsRequest.kind, _VERSIONS}
)
"""The requests that show metadata."""
_BROKER: Final = "broker"
"""The first element of this module's sync tokens; the second is why the process ends."""


@dataclass(frozen=True, slots=True)
class Handlers:
    """The handlers of a part of a broker, by kind of message."""

    answers: Mapping[int, Callable[[int, Any, Effects], None]] = field(default_factory=dict)
    """Responses and rarer events: (now, message, effects)."""
    lost: Mapping[int, Callable[[int, Any, Effects], None]] = field(default_factory=dict)
    """Its requests that came back; whether they had arrived is not known."""
    requests: Mapping[int, Callable[[int, int, Any, Effects], None]] = field(default_factory=dict)
    """Requests of other nodes, taken fenced or not: (now, source, request, effects)."""


class Registrar(Protocol):
    """The way in which a broker registers, hears what it is to do, and leaves."""

    @property
    def handlers(self) -> Handlers:
        """The messages that it takes."""

    def unfit(self, contents: Contents) -> str:
        """Return why the broker may not start on this disk; empty if it may."""

    def start(self, now: int, contents: Contents, effects: Effects, *, is_unclean: bool) -> None:
        """Begin; after a crash the logs are `recovered` first."""

    def recovered(self, now: int, effects: Effects) -> None:
        """The logs are as they were before the crash, but for what is torn at their ends."""

    def stop(self, now: int, effects: Effects) -> None:
        """The operating system asks the broker to end."""

    def tick(self, now: int, effects: Effects) -> None:
        """Look at what is due."""

    def overdue(self, now: int, effects: Effects) -> None:
        """The time is over until which the broker serves (`Situation.serves_until_ns`)."""

    def may_be_forgotten(self) -> bool:
        """Return whether the controller may count it no more, though it has not heard so."""


_Registrar = TypeVar("_Registrar", bound=Registrar)


class BrokerNode(Generic[_Registrar]):
    """A broker, to be driven as `effects.Node` says.

    `follows_fenced`: a fenced broker serves followers, too. `isr`: what the proposals take.
    """

    __slots__ = (
        "_answers",
        "_consume",
        "_fetched",
        "_follow",
        "_follows_fenced",
        "_lost",
        "_produce",
        "_requests",
        "_serves_anyway",
        "_sources",
        "alarm",
        "registrar",
        "replicas",
        "server",
        "situation",
    )

    def __init__(
        self,
        situation: Situation,
        replicas: Replicas,
        server: Server,
        registrar: _Registrar,
        *,
        isr: Handlers,
        follows_fenced: bool,
    ) -> None:
        self.situation = situation
        self.alarm: Alarm = situation.alarm
        self.replicas = replicas
        self.server = server
        self.registrar = registrar
        # Rule fenced_serves_nobody.
        self._serves_anyway = not situation.rules.fenced_serves_nobody
        self._follows_fenced = follows_fenced or self._serves_anyway
        self._sources = server.clients.sources
        self._fetched = replicas.fetchers.fetched
        self._follow = server.fetching.follow
        self._consume = server.fetching.consume
        self._produce = server.producing.produce
        own = registrar.handlers
        self._requests = own.requests
        self._answers = {**own.answers, **isr.answers}
        self._lost = {**own.lost, **isr.lost}

    @property
    def image(self) -> MetadataImage:
        """The metadata that this broker has applied, and acts upon."""
        return self.situation.image

    @property
    def visible(self) -> MetadataImage:
        """The metadata that clients see."""
        return self.server.visibility.image

    def handle(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """Take one event; append what is to be done to `effects`."""
        situation = self.situation
        if now >= situation.serves_until_ns > 0:
            # After a pause this is the first thing to be seen: who waits is answered no more.
            self.registrar.overdue(now, effects)
        if situation.is_over:
            if kind == SYNCED and message[0] == _BROKER:
                effects.append((EXIT, message[1]))
        elif kind == _FETCHED:
            self._fetched(now, message, effects)
        elif kind == _FETCH and message.replica_id >= 0:
            if self._follows_fenced or now < situation.serves_until_ns:
                self._follow(now, source, message, effects)
            else:
                effects.append((CLOSE, source))
        elif kind == _PRODUCE and now < situation.serves_until_ns and source in self._sources:
            self._produce(now, source, message, effects)
        elif kind == TICK:
            self._tick(now, effects)
        elif kind > STOP and kind % 2 == 0:
            self._request(now, source, kind, message, effects)
        else:
            self._rarer(now, kind, message, effects)

    def _request(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        """A client asks, or another node what it may ask."""
        handler = self._requests.get(kind)
        if handler is not None:
            handler(now, source, message, effects)
        elif kind == _VERSIONS and message.by_node:
            self.server.negotiate(source, message, effects)
        elif self._is_shut(now, kind):
            effects.append((CLOSE, source))
        else:
            self._serve(now, source, kind, message, effects)

    def _is_shut(self, now: int, kind: int) -> bool:
        """Return whether this broker answers no client, or not this kind of request."""
        is_fenced = now >= self.situation.serves_until_ns and not self._serves_anyway
        return is_fenced or (kind in _READS and self.registrar.may_be_forgotten())

    def _serve(self, now: int, source: int, kind: int, message: Any, effects: Effects) -> None:
        if source not in self._sources:
            self.server.clients.add(source)
        if kind == _PRODUCE:
            self._produce(now, source, message, effects)
        elif kind == _FETCH:
            self._consume(now, source, message, effects)
        else:
            self.server.request(now, source, kind, message, effects)

    def _tick(self, now: int, effects: Effects) -> None:
        self.alarm.reset()
        self.registrar.tick(now, effects)
        if not self.situation.is_over:
            self.replicas.tick(now, effects)
            self.server.tick(now, effects)

    def _rarer(self, now: int, kind: int, message: Any, effects: Effects) -> None:
        """Responses but those to fetches, and events but ticks."""
        handler = self._answers.get(kind)
        if handler is not None:
            handler(now, message, effects)
        elif kind == UNREACHABLE:
            self._unreachable(now, message, effects)
        elif kind == START:
            self._start(now, message, effects)
        elif kind == STOP:
            self.registrar.stop(now, effects)
        elif kind == RECOVERED:
            self.replicas.load(message)
            self.alarm.by(now)  # what replicas do from time to time begins with the next tick
            self.registrar.recovered(now, effects)
        elif kind != SYNCED:
            self.server.answered(now, kind, message, effects)

    def _start(self, now: int, contents: Contents, effects: Effects) -> None:
        situation = self.situation
        words = self.registrar.unfit(contents)
        if words:
            situation.is_over = True
            effects.append((EXIT, words))
            return
        situation.incarnation_id = contents.incarnation_id
        is_used = bool(contents.logs or contents.topics)
        is_unclean = is_used and not contents.files.get(CLEAN_STOP, False)
        effects.append((WRITE, CLEAN_STOP, False))
        if is_unclean:
            effects.append((RECOVER,))
        else:
            self.replicas.load(contents)
        self.registrar.start(now, contents, effects, is_unclean=is_unclean)

    def _unreachable(self, now: int, request: Any, effects: Effects) -> None:
        """A request came back; whether it had arrived is not known."""
        handler = self._lost.get(request.kind)
        if request.kind == _FETCH:
            self.replicas.fetchers.unreachable(now, request)
        elif handler is not None:
            handler(now, request, effects)
        else:
            self.server.unreachable(now, request, effects)


def end(
    situation: Situation, replicas: Replicas, file: FileName, reason: str, effects: Effects
) -> None:
    """End a broker: what its disk needs for a clean start is made durable, then EXIT follows.

    `file` is made durable with it. An empty reason is a clean end.
    """
    situation.is_over = True
    replicas.close(file, (_BROKER, reason), effects)
