"""The sessions of ZooKeeper behind the metadata: who wrote what, and who was the controller when.

Where ZooKeeper has the metadata, a decision is a transaction of a session, and its zxid is the
metadata offset. A broker's session is the one that made its registration; the controller's is the
one that wrote `/controller_epoch`, in the transaction that made it the controller. The
owners of all other sessions are unknown.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.checkers.metadata.records import LEADER_CHANGE, MetadataRecord
from fencepost.checkers.metadata.view import MetadataView
from fencepost.checkers.sources import Source

_REGISTERED: Final = "RegisterBrokerRecord"
_SIDES: Final[tuple[Literal["left", "right"], ...]] = ("left", "right")
_NO_WRITES: Final = ("closeSession", "createSession", "error")
"""The types of transactions by which a session changes no znode of its own accord."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """A controller's: from this zxid on, in this session."""

    zxid: int
    session: int
    broker_id: int
    controller_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ZnodeSessions:
    """The sessions by transaction."""

    transactions: "_Transactions"
    """Those that the servers' logs have."""
    offices: Sequence[Office]
    """In order."""
    registrations: Sequence[tuple[MetadataRecord, int]]
    """The registrations whose session is known, with it, in order."""

    def session_of(self, zxid: int) -> int | None:
        """Return the session of a transaction; None if no server's log has it."""
        return self.transactions.session_of(zxid)

    def office_at(self, zxid: int) -> Office | None:
        """Return the office that was in force just before a transaction."""
        place = bisect_right(self.offices, zxid - 1, key=lambda one: one.zxid)
        return self.offices[place - 1] if place else None

    def held_before(self, session: int, zxid: int) -> Office | None:
        """Return the last office that a session held before a transaction."""
        place = bisect_right(self.offices, zxid - 1, key=lambda one: one.zxid)
        before = (self.offices[earlier] for earlier in range(place - 1, -1, -1))
        return next((one for one in before if one.session == session), None)

    def first_write_after(self, session: int, zxid: int) -> int | None:
        """Return the first transaction after this one by which a session changed a znode."""
        return self.transactions.first_write_after(session, zxid)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Transactions:
    """Transactions as arrays: a night has half a million, on each of three servers."""

    zxid: NDArray[np.int64]
    """Ascending."""
    session: NDArray[np.int64]
    writing: NDArray[np.int64]
    """The sessions that changed znodes, ascending, once for each time."""
    written: NDArray[np.int64]
    """The zxids by which they did, ascending within a session."""

    def session_of(self, zxid: int) -> int | None:
        """Return the session of a transaction, if it is one of these."""
        place = int(np.searchsorted(self.zxid, zxid))
        known = place < len(self.zxid) and self.zxid[place] == zxid
        return int(self.session[place]) if known else None

    def first_write_after(self, session: int, zxid: int) -> int | None:
        """Return the first of them after this one by which a session changed a znode."""
        begin, end = (int(np.searchsorted(self.writing, session, side)) for side in _SIDES)
        place = begin + int(np.searchsorted(self.written[begin:end], zxid, "right"))
        return int(self.written[place]) if place < end else None


def znode_sessions(transaction_log: Source, seen: MetadataView) -> ZnodeSessions:
    """Return the sessions behind the log of record, out of TRANSACTION_LOG of all servers."""
    found = _transactions(transaction_log)
    told = [one for one in seen.log.records if one.type in (LEADER_CHANGE, _REGISTERED)]
    known = [
        (one, session)
        for one in told
        if not one.snapshot
        for session in [found.session_of(one.metadata_offset)]
        if session is not None
    ]
    return ZnodeSessions(
        transactions=found,
        offices=tuple(_offices(known)),
        registrations=tuple(one for one in known if one[0].type == _REGISTERED),
    )


def _transactions(log: Source) -> _Transactions:
    """Return each transaction once, of whichever server has it."""
    parts = [np.empty((0, 3), dtype=np.int64)]
    for batch in log(("item", "zxid", "session", "type")):
        first = batch.filter(pc.equal(batch.column("item"), 0))
        writes = pc.invert(pc.is_in(first.column("type"), pa.array(_NO_WRITES)))
        columns = (first.column("zxid"), first.column("session"), writes)
        parts.append(np.column_stack([one.cast(pa.int64()).to_numpy() for one in columns]))
    rows = np.concatenate(parts)
    _, first_places = np.unique(rows[:, 0], return_index=True)
    zxid, session, writes = rows[first_places].T
    wrote = writes == 1
    order = np.lexsort((zxid[wrote], session[wrote]))
    return _Transactions(
        zxid=zxid,
        session=session,
        writing=session[wrote][order],
        written=zxid[wrote][order],
    )


def _offices(known: Iterable[tuple[MetadataRecord, int]]) -> Iterator[Office]:
    for record, session in known:
        if record.type == LEADER_CHANGE and record.leader is not None:
            yield Office(
                zxid=record.metadata_offset,
                session=session,
                broker_id=record.leader,
                controller_epoch=record.controller_epoch,
            )
