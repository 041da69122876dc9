"""L9 shared-registration: Two living sessions registered one broker id.

A session registered a broker id that another session had registered before, and that other session
changed a znode afterwards.

A broker's registration is an ephemeral znode: it belongs to a session and ends with it. A second
process with the same id can only register when the znode is gone. If the znode was taken from a
session that goes on, both processes act as one broker.

A process that opens another session has given the earlier one up and writes in it no more; what a
session reads is in no log, so a process that only reads is not seen.

Meaning: Two processes take themselves for one broker.
Case: a registration of an id that another session had registered before
Source: ZooKeeper Programmer's Guide, Ephemeral Nodes; KIP-380, for whose two live processes with
one id this generation has no other sign
"""

from collections.abc import Iterator, Sequence
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.records import MetadataRecord
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.metadata.znode_sessions import ZnodeSessions, znode_sessions
from fencepost.checkers.proof import Proof
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REGISTRATION,
    needs=("transaction_log", "metadata_log"),
)
NAME: Final = ENTRY.name

_Held = tuple[MetadataRecord, int]


def shared_registrations(tables: Tables, seen: MetadataView) -> Judged:
    """Find them, by broker. Reads `transaction_log` and `metadata_log`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    sessions = znode_sessions(streamed(tables, "transaction_log"), seen)
    by_broker: dict[int, list[_Held]] = {}
    for record, session in sessions.registrations:
        assert record.broker_id is not None, record
        by_broker.setdefault(record.broker_id, []).append((record, session))
    for broker_id, held in sorted(by_broker.items()):
        key = f"broker {broker_id}"
        yield key, counted(NAME, key, _judged(held, sessions))


def _judged(held: Sequence[_Held], sessions: ZnodeSessions) -> Iterator[Proof | None]:
    for place, (record, session) in enumerate(held):
        earlier = [one for one in held[:place] if one[1] != session]
        if not earlier:
            continue
        before, other = earlier[-1]
        zxid = sessions.first_write_after(other, record.metadata_offset)
        yield None if zxid is None else _proof(record, session, before, other, zxid)


def _proof(
    record: MetadataRecord, session: int, before: MetadataRecord, other: int, zxid: int
) -> Proof:
    return Proof.of(
        "session {session} registered broker {broker_id} at metadata offset {metadata_offset}, "
        "and session {other}, which had registered it at metadata offset {before}, still wrote at "
        "metadata offset {zxid}",
        metadata_offsets={
            "before": before.metadata_offset,
            "metadata_offset": record.metadata_offset,
            "zxid": zxid,
        },
        zookeeper_ids={"session": session, "other": other},
        sources={"session": "metadata_offset", "other": "before"},
        broker_id=record.broker_id,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=shared_registrations,
    ),
)
