"""The sessions of ZooKeeper behind the metadata: who wrote what, and who was the controller when.

Where ZooKeeper has the metadata, a decision is a transaction of a session, and its zxid is the
metadata offset. A broker's session is the one that made its registration; the controller's is the
one that wrote `/controller_epoch`, in the transaction that made it the controller. The
owners of all other sessions are unknown.
"""

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from checkers.metadata.records import LEADER_CHANGE, MetadataRecord
from checkers.metadata.view import MetadataView

__all__ = ["Office", "ZnodeSessions", "znode_sessions"]

_REGISTERED: Final = "RegisterBrokerRecord"
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

    of_zxid: Mapping[int, int]
    """The session of each transaction that the servers' logs have."""
    writes: Mapping[int, Sequence[int]]
    """The zxids by which each session changed znodes, in order."""
    offices: Sequence[Office]
    """In order."""
    registrations: Sequence[tuple[MetadataRecord, int]]
    """The registrations whose session is known, with it, in order."""

    def office_at(self, zxid: int) -> Office | None:
        """Return the office that was in force just before a transaction."""
        place = bisect_right(self.offices, zxid - 1, key=lambda one: one.zxid)
        return self.offices[place - 1] if place else None

    def held_before(self, session: int, zxid: int) -> Office | None:
        """Return the last office that a session held before a transaction."""
        mine = (one for one in self.offices if one.session == session and one.zxid < zxid)
        return max(mine, key=lambda one: one.zxid, default=None)

    def first_write_after(self, session: int, zxid: int) -> int | None:
        """Return the first transaction after this one by which a session changed a znode."""
        zxids = self.writes.get(session, ())
        place = bisect_right(zxids, zxid)
        return zxids[place] if place < len(zxids) else None


def znode_sessions(transaction_log: pa.Table, seen: MetadataView) -> ZnodeSessions:
    """Return the sessions behind the log of record, out of TRANSACTION_LOG of all servers."""
    of_zxid: dict[int, int] = {}
    writes: dict[int, list[int]] = {}
    for row in _transactions(transaction_log):
        of_zxid[row["zxid"]] = row["session"]
        if row["type"] not in _NO_WRITES:
            writes.setdefault(row["session"], []).append(row["zxid"])
    records = [one for one in seen.log.records if one.metadata_offset in of_zxid]
    return ZnodeSessions(
        of_zxid=of_zxid,
        writes=writes,
        offices=tuple(_offices(records, of_zxid)),
        registrations=tuple(
            (one, of_zxid[one.metadata_offset])
            for one in records
            if one.type == _REGISTERED and not one.snapshot
        ),
    )


def _transactions(log: pa.Table) -> Iterator[Mapping[str, Any]]:
    """Yield one row a transaction, by zxid, of whichever server has it."""
    first = log.filter(pc.equal(log["item"], 0)).select(["zxid", "session", "type"])
    last = None
    for row in first.sort_by("zxid").to_pylist():
        if row["zxid"] != last:
            last = row["zxid"]
            yield row


def _offices(records: Sequence[MetadataRecord], of_zxid: Mapping[int, int]) -> Iterator[Office]:
    for record in records:
        if record.type == LEADER_CHANGE and record.leader is not None and not record.snapshot:
            yield Office(
                zxid=record.metadata_offset,
                session=of_zxid[record.metadata_offset],
                broker_id=record.leader,
                controller_epoch=record.controller_epoch,
            )
