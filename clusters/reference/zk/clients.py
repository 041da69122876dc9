"""The parts of a broker's service to clients that are this generation's own.

Clients see what UpdateMetadata told the broker, at once, and ask the controller itself for what it
decides. Blocks of producer ids are taken from a znode.
"""

from typing import Any, Final

from fencepost.clusters.node_port.effects import CLOSE, Effects
from fencepost.clusters.node_port.zookeeper import GetData, SetData
from fencepost.clusters.reference.nodes.errors import Error
from fencepost.clusters.reference.nodes.image import MetadataImage
from fencepost.clusters.reference.nodes.messages.control import AllocateProducerIdsResponse
from fencepost.clusters.reference.nodes.serving.forwarding import Forwarding
from fencepost.clusters.reference.nodes.serving.producer_ids import ProducerIds
from fencepost.clusters.reference.zk.control.controller import CONTROLLED, Controller
from fencepost.clusters.reference.zk.session_requests import SessionExpiredError
from fencepost.clusters.reference.zk.situation import ZkSituation
from fencepost.clusters.reference.zk.znodes import PRODUCER_IDS, ProducerIdBlock

_BLOCK_LENGTH: Final = 1_000
_NONE: Final = int(Error.NONE)
_FAILED: Final = int(Error.UNKNOWN_SERVER_ERROR)


class ToldMetadata:
    """The metadata that a broker shows: all that it was told."""

    __slots__ = ("_situation",)

    def __init__(self, situation: ZkSituation) -> None:
        self._situation = situation

    @property
    def image(self) -> MetadataImage:
        """The metadata that is shown."""
        return self._situation.image

    @property
    def controller_id(self) -> int:
        """The controller, which clients have to ask themselves; -1: none is known."""
        return self._situation.controller_id

    def offered_level(self) -> int:
        """The level whose APIs clients may use, which only a restart changes."""
        return self._situation.level

    def waits(self, _now: int, _source: int, _request: Any, _effects: Effects) -> bool:
        """Return that no read has to wait."""
        return False

    def ready(self) -> list[tuple[int, Any]]:
        """Return no reads, since none waits."""
        return []

    def tick(self, _now: int, _effects: Effects) -> None:
        """Do nothing: nothing waits."""

    def close(self, _effects: Effects) -> None:
        """Do nothing: nothing waits."""


class ClientsOfController:
    """Clients' requests to the controller, of which this broker may have the part.

    It passes on only what it wants itself.
    """

    __slots__ = ("_controller", "_own")

    def __init__(self, situation: ZkSituation, controller: Controller) -> None:
        self._controller = controller
        self._own = Forwarding(situation)

    def forward(self, now: int, source: int | None, request: Any, effects: Effects) -> None:
        """Take a client's request; source None: the broker itself asks."""
        if source is None:
            self._own.forward(now, None, request, effects)
        elif request.kind in CONTROLLED:
            self._controller.request(now, source, request, effects)
        else:
            effects.append((CLOSE, source))

    def answered(self, now: int, response: Any, effects: Effects) -> None:
        """The controller answered a request of the broker's."""
        self._own.answered(now, response, effects)

    def unreachable(self, request: Any, effects: Effects) -> None:
        """A request of the broker's came back."""
        self._own.unreachable(request, effects)

    def tick(self, now: int, effects: Effects) -> None:
        """Look at the broker's requests."""
        self._own.tick(now, effects)

    def finish(self) -> frozenset[int]:
        """Return no clients: none waits here."""
        return frozenset()

    def close(self, effects: Effects) -> None:
        """Give the broker's requests up."""
        self._own.close(effects)


class ProducerIdZnode:
    """To reserve a block of producer ids a broker overwrites the znode with that block."""

    __slots__ = ("_correlation", "_producer_ids", "_situation")

    def __init__(self, situation: ZkSituation) -> None:
        self._situation = situation
        self._correlation = 0
        self._producer_ids: ProducerIds | None = None

    def give_to(self, producer_ids: ProducerIds) -> None:
        """Hand the blocks to this one."""
        self._producer_ids = producer_ids

    @property
    def can_be_asked(self) -> bool:
        """Return whether ZooKeeper can be asked."""
        return self._situation.zookeeper.is_connected

    def ask(self, now: int, correlation: int, effects: Effects) -> None:
        """Take the block after the one that was given away last."""
        self._correlation = correlation
        self._situation.zookeeper.coroutines.run(now, self._take(), effects)

    async def _take(self) -> None:
        try:
            block = await self._written()
        except SessionExpiredError:
            block = None
        coroutines = self._situation.zookeeper.coroutines
        self._answer(coroutines.now, block, coroutines.effects)

    async def _written(self) -> ProducerIdBlock | None:
        """Return the block that is this broker's now; None: another broker was faster.

        A block written by a first try whose answer was lost is given up, which does no harm.
        """
        zookeeper = self._situation.zookeeper
        (found,) = await zookeeper.read([GetData(PRODUCER_IDS)])
        if found.stat is None:
            return None
        known = ProducerIdBlock.decoded(found.data)
        # Rule producer_ids_unique.
        is_unique = self._situation.rules.producer_ids_unique
        start = known.end + 1 if is_unique else 0
        block = ProducerIdBlock(self._situation.node_id, start, start + _BLOCK_LENGTH - 1)
        version = found.stat.version if is_unique else -1
        answer = await zookeeper.answer(SetData(PRODUCER_IDS, block.encoded(), version))
        return None if answer.error else block

    def _answer(self, now: int, block: ProducerIdBlock | None, effects: Effects) -> None:
        assert self._producer_ids is not None
        if block is None:
            response = AllocateProducerIdsResponse(self._correlation, _FAILED, -1, 0)
        else:
            length = block.end - block.start + 1
            response = AllocateProducerIdsResponse(self._correlation, _NONE, block.start, length)
        self._producer_ids.allocated(now, response, effects)
