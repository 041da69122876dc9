"""Events as columns of numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fencepost.report.serve.timeline.names import Codes

KINDS: Final = ("request", "response", "operation", "record")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Events as columns of one length; times are ns of the run, words codes of `TimelineReader`."""

    time_ns: NDArray[np.int64]
    until_ns: NDArray[np.int64]
    """The time when a frame was passed on, or an operation returned; -1: never."""
    kind: NDArray[np.uint8]
    """The place in `KINDS`."""
    lane: Codes
    """The sender of a frame, the client of an operation."""
    peer: Codes
    """The receiver of a frame; else the lane itself."""
    link: Codes
    """The link of a frame; else the lane itself."""
    what: Codes
    """The API of a frame, the function of an operation, the type of a record."""
    key: Codes
    fate: Codes
    """The action of a frame, the outcome of an operation."""
    error: Codes
    leader_epoch: NDArray[np.int64]
    """Of a partition, a quorum or a controller; -1: none is stated."""
    broker_epoch: Codes
    row: NDArray[np.int64]
    """The frame, the operation, the metadata offset."""

    def where(self, chosen: NDArray[Any]) -> "Block":
        """Return the events that are chosen."""
        return Block(**{name: getattr(self, name)[chosen] for name in Block.__dataclass_fields__})

    @classmethod
    def joined(cls, blocks: Sequence["Block"]) -> "Block":
        """Return the events of all blocks in the order of their times."""
        columns = {
            name: np.concatenate([getattr(one, name) for one in blocks])
            for name in cls.__dataclass_fields__
        }
        order = np.argsort(columns["time_ns"], kind="stable")
        return cls(**{name: column[order] for name, column in columns.items()})


def longest_of(bars: Block, more: Block, count: int) -> Block:
    """Return the `count` longest of both, in the order of their times."""
    both = Block.joined([bars, more])
    if len(both.time_ns) <= count:
        return both
    place = np.argpartition(both.time_ns - both.until_ns, count)[:count]
    return both.where(np.sort(place))


def no_events() -> Block:
    """Return a block of no events."""
    nothing = np.zeros(0, dtype=np.int64)
    columns: dict[str, Any] = dict.fromkeys(Block.__dataclass_fields__, nothing)
    return Block(**{**columns, "kind": np.zeros(0, dtype=np.uint8)})
