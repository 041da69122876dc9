"""Reading all that a new controller has to know, with the watches that tell what changes.

It begins once the controller has won. What an earlier controller wrote is older than this one's
/controller, so a session that made it reads all of that, and nothing of an earlier epoch is written
afterwards.

Source: Kafka's `KafkaController.initializeControllerContext`.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from clusters.node_port.effects import Effects
from clusters.node_port.storage import PartitionKey
from clusters.node_port.zookeeper import GetChildren, GetData, ZkOutcome
from clusters.reference.zk.asking import Asking
from clusters.reference.zk.control.context import Context
from clusters.reference.zk.control.reading import read_all, read_children
from clusters.reference.zk.znodes import (
    BROKER_IDS,
    DELETE_TOPICS,
    TOPICS,
    TopicInfo,
    state_path,
)

__all__ = ["OnLoaded", "load"]

OnLoaded = Callable[[int, dict[str, ZkOutcome], Effects], None]
"""(now, the registrations as read by name, effects); the context has all the rest."""

_SETTINGS: Final = ("/config/topics", "/config/brokers")


def load(asking: Asking, now: int, context: Context, then: OnLoaded, effects: Effects) -> None:
    """Fill the context of a new controller epoch."""

    def listed(now: int, outcomes: list[ZkOutcome], effects: Effects) -> None:
        for parent, one in zip(_SETTINGS, outcomes[:2], strict=True):
            context.settings_paths |= {f"{parent}/{name}" for name in one.children}
        context.deleting |= dict.fromkeys(outcomes[2].children)
        read_children(asking, now, TOPICS, assigned, effects, watches_data=True)

    def assigned(now: int, topics: dict[str, ZkOutcome], effects: Effects) -> None:
        for name, one in topics.items():
            if one.stat is not None:
                context.assign(name, TopicInfo.decoded(one.data), one.stat.version)
        keys = context.without_state()
        reads = [GetData(state_path(context.image.names[one[0]], one[1])) for one in keys]
        read_all(asking, now, reads, partial(decided, keys), effects)

    def decided(
        keys: list[PartitionKey], now: int, outcomes: list[ZkOutcome], effects: Effects
    ) -> None:
        for key, outcome in zip(keys, outcomes, strict=True):
            context.refresh(key, outcome)
        read_children(asking, now, BROKER_IDS, then, effects, watches_data=True)

    reads = [*(GetChildren(one) for one in _SETTINGS), GetChildren(DELETE_TOPICS, watch=True)]
    read_all(asking, now, reads, listed, effects)
