"""The facts about a run that its operations tell in addition to the records of each key."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fencepost.history.manifest import Readers


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalRead:
    """A final read of a key that is complete; it may have returned nothing at all."""

    operation: int
    key: str
    call_ns: int
    return_ns: int
    record_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """The facts needed to judge a key in addition to its records."""

    idempotent: bool = True
    """Producers were promised that a retry adds nothing and that order is kept."""
    consume: str = "assign"
    """The way consumers got their keys: "assign", "subscribe" or "both"."""
    final_reads: tuple[FinalRead, ...] = ()
    """The complete ones, of all keys."""
    info_polls: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)
    """Operation indices, ascending, of polls whose records may have been lost, by process."""
    readers: tuple[Readers, ...] = ()
    """The clients that go on reading from each other."""
