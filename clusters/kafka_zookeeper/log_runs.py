"""The runs of a server's history: parts of its transaction logs without a gap.

A server that lost its disk, or was away for long, takes over a snapshot of its leader; what it had
logged before that is an earlier run. Transactions at the end of such a run may never have been
committed. It counts up to the last one that a run which counts has, too: in ZooKeeper's protocol,
what is before one transaction is the same wherever that is logged. The last run of each server
counts, as what its disk holds. At any time a majority goes on without a gap, so one run leads to
the other, from the last ones back to the first.

A gap is known by its zxids, which are counted from 1 in each epoch; one that lasts until the end of
an epoch cannot be told.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from fencepost.clusters.port import NodeName
from fencepost.clusters.protocol.zookeeper_transactions import zxid_in
from fencepost.clusters.zookeeper.stored.logs import StoredError, log_files, stored_entries

_EPOCH_BITS: Final = 32


@dataclass(slots=True, kw_only=True)
class LogRun:
    """A part of the logs in a `version-2` directory."""

    home: Path
    zxids: "array[int]"
    is_last: bool
    """The run with which the server's history ends."""
    end: int = 0
    """The last zxid that counts; of the last run all do."""

    @property
    def first(self) -> int | None:
        """The first zxid; None for empty logs."""
        return self.zxids[0] if self.zxids else None

    def last_shared(self, other: "LogRun") -> int:
        """Return the last zxid that another run has, too, of those that count there; 0: none."""
        place = bisect_right(self.zxids, min(other.end, other.zxids[-1])) if other.zxids else 0
        for zxid in reversed(self.zxids[:place]):
            at = bisect_left(other.zxids, zxid)
            if at < len(other.zxids) and other.zxids[at] == zxid:
                return zxid
            if at == 0:
                return 0
        return 0


def runs_that_count(homes: Mapping[NodeName, Sequence[Path]]) -> Mapping[NodeName, list[LogRun]]:
    """Return the runs of each server, oldest first; its last one always, of the others some.

    `homes` has each server's `version-2` directories, the one that it has at the end last.
    """
    found = {node: list(_runs(several)) for node, several in homes.items()}
    every = [run for runs in found.values() for run in runs]
    counting = [run for run in every if run.is_last]
    while counting:
        known, counting = counting, []
        for run in (one for one in every if not one.is_last):
            end = max((run.last_shared(other) for other in known if other is not run), default=0)
            if end > run.end:
                run.end = end
                counting.append(run)
    return {node: [run for run in runs if run.end] for node, runs in found.items()}


def first_of_epoch(zxid: int) -> int:
    """Return the first zxid of the epoch of this one."""
    return (zxid >> _EPOCH_BITS << _EPOCH_BITS) + 1


def _runs(homes: Sequence[Path]) -> Iterator[LogRun]:
    for home in homes:
        parts = list(_without_gaps(home))
        for place, zxids in enumerate(parts):
            is_last = home is homes[-1] and place == len(parts) - 1
            end = 1 << 63 if is_last else 0
            yield LogRun(home=home, zxids=zxids, is_last=is_last, end=end)


def _without_gaps(home: Path) -> Iterator["array[int]"]:
    """Yield the zxids of the logs, part by part; one that is empty for empty logs.

    The logs are looked through up to any damage, which their reader reports.
    """
    found = array("q")
    with suppress(StoredError):
        for log in log_files(home):
            for _, entry in stored_entries(log):
                zxid = zxid_in(entry)
                last = found[-1] if found else None
                if last is not None and zxid <= last:
                    continue
                if last is not None and zxid > last + 1 and zxid != first_of_epoch(zxid):
                    yield found
                    found = array("q")
                found.append(zxid)
    yield found
