"""What followers' Fetches told their leaders, by the tape: broker epochs, partition by partition.

The tape has every Fetch between brokers that tells something new on its connection (`wire` in
`history/cluster_schema.py`). So the first one of a partition under a broker epoch to be passed on
says since when the leader can know that epoch: before it, no Fetch under it had arrived.

A Fetch with a session epoch above 0 also goes on with partitions that it does not name (KIP-227).
Which they are is known where a Fetch of the same connection under the same broker epoch began the
session; else such a Fetch counts as one of every partition. One that could not be decoded may have
told anything.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["FollowerFetches", "Told", "follower_fetches"]

_EPOCHS_FROM: Final = 15
"""The version of Fetch that states epochs (KIP-903)."""
_COLUMNS: Final = (
    *("frame", "connection", "source", "target", "api_version", "forwarded_ns"),
    *("topic_id", "partition", "broker_epoch", "session_epoch"),
)

_Link = tuple[str, str]
"""(follower, leader), by name."""
_Place = tuple[str, int]
"""(topic id, partition)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A Fetch that reached the leader, or may have."""

    reached_ns: int
    """When it was passed on: it arrived no earlier."""
    frame: int
    broker_epoch: int | None
    """None: it could not be decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerFetches:
    """What was told, by link and partition."""

    links: frozenset[_Link]
    """Those on the tape at all; none of a tape that is older than the Fetches on it."""
    _by_place: Mapping[tuple[_Link, _Place | None], tuple[Told, ...]]
    """None as place: of every partition."""

    def told(self, link: _Link, place: _Place) -> tuple[Told, ...]:
        """The Fetches of this partition that tell something, in the order of their passing."""
        named, of_all = (self._by_place.get((link, one), ()) for one in (place, None))
        return tuple(sorted((*named, *of_all), key=lambda told: (told.reached_ns, told.frame)))


def follower_fetches(wire: pa.Table) -> FollowerFetches:
    """Read the Fetches between brokers off the tape."""
    kept = wire.slice(0, 0) if _is_older(wire) else wire
    links = kept.select(["source", "target"]).group_by(["source", "target"]).aggregate([])
    found: defaultdict[tuple[_Link, _Place | None], list[Told]] = defaultdict(list)
    begun: set[tuple[int, int]] = set()
    for row in _requests(wire):
        told = Told(
            reached_ns=row["forwarded_ns"], frame=row["frame"], broker_epoch=row["broker_epoch"]
        )
        link = (row["source"], row["target"])
        session = (row["connection"], row["broker_epoch"])
        if row["broker_epoch"] is None:
            found[link, None].append(told)
            continue
        if row["partition"] is not None:
            found[link, (row["topic_id"], row["partition"])].append(told)
        if (row["session_epoch"] or 0) <= 0:
            begun.add(session)
        elif session not in begun:
            found[link, None].append(told)
    return FollowerFetches(
        links=frozenset((row["source"], row["target"]) for row in links.to_pylist()),
        _by_place={where: tuple(several) for where, several in found.items()},
    )


def _is_older(wire: pa.Table) -> bool:
    """Whether it is of a run before the Fetches of followers were recorded: none has a session."""
    sessions = wire.filter(
        pc.and_(pc.equal(wire["api"], "Fetch"), pc.equal(wire["direction"], "request"))
    )["session_epoch"]
    return len(sessions) > 0 and sessions.null_count == len(sessions)


def _requests(wire: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of data Fetches that can tell an epoch and were passed on, in their order."""
    requests = pc.and_(pc.equal(wire["api"], "Fetch"), pc.equal(wire["direction"], "request"))
    passed_on = pc.is_valid(wire["forwarded_ns"])
    mine = wire.filter(pc.and_(requests, passed_on)).select(list(_COLUMNS))
    for row in mine.sort_by([("frame", "ascending")]).to_pylist():
        between_brokers = all(row[end].startswith("broker-") for end in ("source", "target"))
        if between_brokers and row["api_version"] >= _EPOCHS_FROM:
            yield row
