"""The content of a disk before a power cut, and what of it is lost: by replica, and in bytes.

Both looks are at a disk that no process writes to: the first while every thread of the node is
stopped, the second once the disk is mounted again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from clusters.hosts.disk import file_sizes
from clusters.witness.live import log_end_offset

__all__ = ["ReplicaHoldings", "holdings_of"]

_REPLICA: Final = re.compile(r".+-\d+")
_HOLDING: Final = frozenset({".log", ".checkpoint"})
"""Indexes are made anew, and preallocated: their sizes mean nothing."""
_NAMED_MAX: Final = 6
"""Replicas named in one sentence; the rest is counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaHoldings:
    """The content of a data directory."""

    log_ends: Mapping[str, int]
    """The log end offset of each replica, by its directory: `topic-partition`."""
    file_bytes: Mapping[Path, int]
    """The size of each segment and snapshot, by its path within the data directory."""

    def loss(self, after: Self) -> str:
        """Return what is gone, in words: offsets by replica, and the bytes of all files."""
        gone_bytes = sum(
            max(0, size - after.file_bytes.get(path, 0)) for path, size in self.file_bytes.items()
        )
        if gone_bytes == 0:
            return "it lost nothing: all that its logs and snapshots held was on the disk"
        cut = [
            f"{name} {after.log_ends.get(name, 0)}..{end - 1}"
            for name, end in self.log_ends.items()
            if after.log_ends.get(name, 0) < end
        ]
        more = f" and of {len(cut) - _NAMED_MAX} more replicas" if len(cut) > _NAMED_MAX else ""
        offsets = f": offsets of {', '.join(cut[:_NAMED_MAX])}{more}" if cut else ""
        return f"it lost {gone_bytes:,} bytes of its logs and snapshots{offsets}"


def holdings_of(data: Path) -> ReplicaHoldings:
    """Return what a data directory holds now; nothing if it does not exist."""
    replicas = sorted(path.name for path in data.glob("*") if _REPLICA.fullmatch(path.name))
    ends = {name: log_end_offset(data, name) for name in replicas}
    return ReplicaHoldings(
        log_ends={name: end for name, end in ends.items() if end is not None},
        file_bytes={
            path: size for path, size in file_sizes(data).items() if path.suffix in _HOLDING
        },
    )
