"""The ends of the transaction logs on a server's disk, and what of them a power cut takes."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from fencepost.clusters.protocol.zookeeper_transactions import zxid_in
from fencepost.clusters.zookeeper.stored.logs import StoredError, log_files, stored_entries
from fencepost.clusters.zookeeper.view import zxid_text

_EPOCHS: Final = ("acceptedEpoch", "currentEpoch")


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskHoldings:
    """The content of a data directory."""

    last_zxid: int
    """The last whole transaction in its logs; 0 for empty logs."""
    epochs: tuple[int, int]
    """The accepted and the current epoch; -1: not stated."""

    def loss(self, after: Self) -> str:
        """Return what is gone, in words."""
        found = [
            f"its {name} went from {before} to {now if now >= 0 else 'nothing'}"
            for name, before, now in zip(_EPOCHS, self.epochs, after.epochs, strict=True)
            if now < before
        ]
        if after.last_zxid < self.last_zxid:
            ends = f"{zxid_text(after.last_zxid)} up to {zxid_text(self.last_zxid)}"
            found.insert(0, f"it lost the transactions after {ends}")
        return ", ".join(found) or "it lost nothing: all that its logs held was on the disk"


def holdings_of(data: Path) -> DiskHoldings:
    """Return what a data directory holds now; nothing if it does not exist."""
    home = data / "version-2"
    newest_first = reversed(log_files(home))
    return DiskHoldings(
        last_zxid=next(filter(None, map(_last_zxid, newest_first)), 0),
        epochs=(_number(home / _EPOCHS[0]), _number(home / _EPOCHS[1])),
    )


def _last_zxid(log: Path) -> int:
    """Return the last whole transaction of one log before any damage; 0 if it has none."""
    last = 0
    with suppress(StoredError):
        for _, entry in stored_entries(log):
            last = zxid_in(entry)
    return last


def _number(file: Path) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):
        return -1
