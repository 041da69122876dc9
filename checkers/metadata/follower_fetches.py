"""The broker epochs that followers' Fetches told their leaders, by partition, read from the tape.

The tape has every Fetch between brokers that tells something new on its connection (`wire` in
`history/cluster_schema.py`). So the first one of a partition under a broker epoch to be passed on
says since when the leader can know that epoch: before it, no Fetch under it had arrived.

A Fetch with a session epoch above 0 also goes on with partitions that it does not name (KIP-227).
Which they are is known where a Fetch of the same connection under the same broker epoch began the
session; else such a Fetch counts as one of every partition. One that could not be decoded may have
told anything.

Below version 15 a Fetch names no epoch, and the tape has the first one of each connection. But a
connection is of one process, and a broker fetches only once its registration was answered. So one
whose first Fetch came before that is of an earlier incarnation.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.metadata.remembered import remembered
from fencepost.checkers.rows import OPEN_NS
from fencepost.checkers.sources import Source, rows_of, source_of
from fencepost.history.roles import BROKER, role_of

_EPOCHS_FROM: Final = 15
"""The version of Fetch that states epochs (KIP-903)."""
_COLUMNS: Final = (
    *("api", "direction", "frame", "connection", "source", "target", "api_version"),
    *("time_ns", "forwarded_ns", "topic", "topic_id", "partition", "broker_epoch", "session_epoch"),
)
_METADATA_LOG: Final = "__cluster_metadata"

_Link = tuple[str, str]
"""(follower, leader), by name."""
_Place = tuple[str, int]
"""(topic id, partition)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedFetch:
    """A Fetch that reached the leader, or may have."""

    reached_ns: int
    """The time when it was passed on: it arrived no earlier."""
    frame: int
    broker_epoch: int | None
    """None: it could not be decoded."""


class ToldEpochs:
    """The Fetches of one replica that tell its leader something, in the order of passing."""

    def __init__(self, fetches: Iterable[PassedFetch]) -> None:
        self._fetches = sorted(fetches, key=lambda told: (told.reached_ns, told.frame))
        self._first: dict[int | None, PassedFetch] = {}
        for one in self._fetches:
            self._first.setdefault(one.broker_epoch, one)

    def __iter__(self) -> Iterator[PassedFetch]:
        return iter(self._fetches)

    def last_by(self, time_ns: int) -> PassedFetch | None:
        """Return the last one that had been passed on by then."""
        place = bisect_right(self._fetches, time_ns, key=lambda told: told.reached_ns)
        return self._fetches[place - 1] if place else None

    def first_under(self, broker_epoch: int | None) -> PassedFetch | None:
        """Return the first one under a broker epoch; of None, the first that was not decoded."""
        return self._first.get(broker_epoch)


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerFetches:
    """The broker epochs that were told, by link and partition."""

    links: frozenset[_Link]
    """The links on the tape; empty for a tape older than the recording of Fetches."""
    _by_place: Mapping[tuple[_Link, _Place | None], tuple[PassedFetch, ...]]
    """None as place: of every partition."""
    _connections: Mapping[_Link, tuple["_Connection", ...]]
    _told: dict[tuple[_Link, _Place], ToldEpochs] = field(default_factory=dict)
    """Answers of `told`, kept: a night has thousands of joins of each replica."""

    def told(self, link: _Link, place: _Place) -> ToldEpochs:
        """Return the Fetches of this partition that tell something."""
        if (link, place) not in self._told:
            both = (self._by_place.get((link, one), ()) for one in (place, None))
            self._told[link, place] = ToldEpochs(chain.from_iterable(both))
        return self._told[link, place]

    def heard_ns(self, link: _Link, *, since_ns: int) -> int | None:
        """Return when a Fetch was first passed on of those connections that began since then."""
        later = (one for one in self._connections.get(link, ()) if one.began_ns >= since_ns)
        return min((one.heard_ns for one in later if one.heard_ns is not None), default=None)


@dataclass(slots=True)
class _Connection:
    """A follower's to its leader."""

    began_ns: int
    """The time when its first Fetch arrived."""
    heard_ns: int | None = None
    """The time when its first Fetch was passed on."""

    def hear(self, forwarded_ns: int | None) -> None:
        """A Fetch was passed on at that time, if ever."""
        known = [one for one in (self.heard_ns, forwarded_ns) if one is not None]
        self.heard_ns = min(known, default=None)


@remembered
def follower_fetches(wire: pa.Table | Source) -> FollowerFetches:
    """Read the Fetches between brokers off the tape."""
    links: set[_Link] = set()
    fetches = []
    for batch in source_of(wire)(_COLUMNS):
        there = pa.Table.from_batches([batch]).group_by(["source", "target"]).aggregate([])
        links |= {(row["source"], row["target"]) for row in there.to_pylist()}
        fetches.append(batch.filter(_is_request(batch)))
    rows = pa.Table.from_batches(fetches)
    found: defaultdict[tuple[_Link, _Place | None], list[PassedFetch]] = defaultdict(list)
    connections: defaultdict[_Link, dict[int, _Connection]] = defaultdict(dict)
    begun: set[tuple[int, int]] = set()
    for row in _between_brokers(rows):
        link = (row["source"], row["target"])
        own = connections[link].setdefault(row["connection"], _Connection(row["time_ns"]))
        own.hear(row["forwarded_ns"])
        if row["forwarded_ns"] is None or row["api_version"] < _EPOCHS_FROM:
            continue
        for place in _places(row, begun):
            found[link, place].append(
                PassedFetch(
                    reached_ns=row["forwarded_ns"],
                    frame=row["frame"],
                    broker_epoch=row["broker_epoch"],
                )
            )
    return FollowerFetches(
        links=frozenset() if _is_older(rows) else frozenset(links),
        _by_place={where: tuple(several) for where, several in found.items()},
        _connections={link: tuple(several.values()) for link, several in connections.items()},
    )


def begun_first(wire: pa.RecordBatch) -> NDArray[np.bool_]:
    """Return which rows tell of a connection between brokers what no row before them told.

    Of the requests that begin a session, or are too old to name an epoch, those of one broker epoch
    on one connection tell the same as the first of them to arrive and the first to be passed on; of
    other Fetches it is the first row of each.
    """
    of_fetch = pc.and_(_is_request(wire), pc.equal(wire.column("item"), 0))
    named = pc.is_valid(wire.column("broker_epoch"))
    begins = pc.and_(named, pc.less_equal(pc.fill_null(wire.column("session_epoch"), 0), 0))
    alike = pc.and_(of_fetch, pc.or_(begins, pc.less(wire.column("api_version"), _EPOCHS_FROM)))
    first: NDArray[np.bool_] = pc.and_not(of_fetch, alike).to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(alike.to_numpy(zero_copy_only=False))
    told = wire.take(pa.array(rows))
    forwarded_ns = pc.fill_null(told.column("forwarded_ns"), OPEN_NS).to_numpy()
    epoch = pc.fill_null(told.column("broker_epoch"), -1).to_numpy()
    session = (told.column("connection").to_numpy(), epoch, forwarded_ns == OPEN_NS)
    for time in (told.column("frame").to_numpy(), forwarded_ns):
        order = np.lexsort((time, *session))
        differs = [part[order][1:] != part[order][:-1] for part in session]
        begun = np.append(True, np.logical_or.reduce(differs))[: len(order)]
        first[rows[order[begun]]] = True
    return first


def _places(row: Mapping[str, Any], begun: set[tuple[int, int]]) -> Iterator[_Place | None]:
    """Yield the partitions that a row tells of. `begun`: sessions by connection, broker epoch."""
    session = (row["connection"], row["broker_epoch"])
    if row["broker_epoch"] is None:
        yield None
        return
    if row["partition"] is not None:
        yield row["topic_id"], row["partition"]
    if (row["session_epoch"] or 0) <= 0:
        begun.add(session)
    elif session not in begun:
        yield None


def _is_older(fetches: pa.Table) -> bool:
    """Return whether the run predates the recording of followers' Fetches: none has a session."""
    return len(fetches) > 0 and fetches["session_epoch"].null_count == len(fetches)


def _is_request(wire: pa.RecordBatch) -> pa.Array:
    is_fetch = pc.equal(wire.column("api"), "Fetch")
    return pc.and_(is_fetch, pc.equal(wire.column("direction"), "request"))


def _between_brokers(fetches: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows of Fetches between brokers, in the order of their arrival."""
    for row in rows_of(fetches.sort_by([("frame", "ascending")])):
        of_brokers = all(role_of(row[end]) == BROKER for end in ("source", "target"))
        # A broker that is a controller, too, is asked for the metadata log as well.
        if of_brokers and row["topic"] != _METADATA_LOG:
            yield row
