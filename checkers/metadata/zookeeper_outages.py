"""The times in which ZooKeeper may have taken no write.

Without a majority an ensemble keeps its sessions and takes no write, for any length of time; so a
controller may then know what it cannot write yet. That it takes writes is seen by each transaction
of the log, and by each answer of a server that leads (`ensemble`). A longer time without either
counts as an outage, even if ZooKeeper was only idle and unobserved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from checkers.facts import Facts
from checkers.metadata.log_of_record import LogOfRecord

__all__ = ["Outages", "outages_of"]

_SIGHT_NS: Final = 3_000_000_000
"""The longest time between two signs in which nothing is supposed."""
_FOLLOWER: Final = "follower"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outages:
    """Those of a run."""

    spans: Sequence[tuple[int, int]]
    """From when until when, in order."""

    def after(self, begin_ns: int, lasting_ns: int) -> int:
        """Return the time by which ZooKeeper has surely been there for so long since a time."""
        end_ns = begin_ns + lasting_ns
        for since_ns, until_ns in self.spans:
            if until_ns > begin_ns and since_ns < end_ns:
                end_ns += until_ns - max(since_ns, begin_ns)
        return end_ns


def outages_of(log: LogOfRecord, ensemble: pa.Table, facts: Facts) -> Outages:
    """Return the outages between the first sign and the last."""
    signs = [
        (facts.earliest_ns(stamp), facts.latest_ns(stamp))
        for stamp in pc.unique(log.rows["timestamp_ms"]).to_pylist()
    ]
    leads = pc.and_(ensemble["serving"], pc.not_equal(ensemble["mode"], _FOLLOWER))
    signs += [(at, at) for at in ensemble.filter(leads)["time_ns"].to_pylist()]
    signs.sort()
    spans = [
        (earliest_ns, next_latest_ns)
        for (earliest_ns, latest_ns), (next_earliest_ns, next_latest_ns) in pairwise(signs)
        if next_earliest_ns - latest_ns > _SIGHT_NS
    ]
    return Outages(spans=spans)
