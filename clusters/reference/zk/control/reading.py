"""Reading several znodes: one request each, and one callback once all are answered."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from clusters.node_port.effects import Effects
from clusters.node_port.zookeeper import Exists, GetChildren, GetData, Sync, ZkError, ZkOutcome
from clusters.reference.zk.asking import Asking, ZkAnswer

__all__ = ["OnChildren", "OnRead", "Read", "read_all", "read_children"]

Read = GetData | Exists | GetChildren | Sync
OnRead = Callable[[int, list[ZkOutcome], Effects], None]
"""(now, outcomes in the order of the reads, effects)."""
OnChildren = Callable[[int, dict[str, ZkOutcome], Effects], None]
"""(now, what was read of each child by its name, effects)."""

_EXPIRED: Final = int(ZkError.SESSION_EXPIRED)


def read_all(
    asking: Asking, now: int, reads: Sequence[Read], then: OnRead, effects: Effects
) -> None:
    """Read; `then` is never called if the session ends before all are answered."""
    outcomes: dict[int, ZkOutcome] = {}

    def answered(index: int, now: int, answer: ZkAnswer, effects: Effects) -> None:
        response = answer.response
        if response.error == _EXPIRED:
            return
        outcomes[index] = response.outcomes[0] if response.outcomes else ZkOutcome(response.error)
        if len(outcomes) == len(reads):
            then(now, [outcomes[index] for index in range(len(reads))], effects)

    if not reads:
        then(now, [], effects)
    for index, one in enumerate(reads):
        asking.ask((one,), partial(answered, index), effects)


def read_children(
    asking: Asking,
    now: int,
    path: str,
    then: OnChildren,
    effects: Effects,
    *,
    watches_data: bool = False,
) -> None:
    """Read a znode's children and watch which there are; `then` gets those that are there.

    `watches_data`: watch the data of each, too.
    """

    def listed(now: int, outcomes: list[ZkOutcome], effects: Effects) -> None:
        names = outcomes[0].children
        reads = [GetData(f"{path}/{name}", watch=watches_data) for name in names]
        read_all(asking, now, reads, partial(found, names), effects)

    def found(
        names: tuple[str, ...], now: int, outcomes: list[ZkOutcome], effects: Effects
    ) -> None:
        pairs = zip(names, outcomes, strict=True)
        then(now, {name: one for name, one in pairs if not one.error}, effects)

    read_all(asking, now, [GetChildren(path, watch=True)], listed, effects)
