"""C16 deposed-controller-write: A deposed controller went on deciding.

A session that had held the office of the controller changed the state of a partition after another
session had taken the office; changes of the ISR alone by the session of the partition's leader are
left out.

Where ZooKeeper has the metadata, a controller writes the states of partitions itself. One that was
paused, or cut off, may not know that its session is over and another broker is the controller. Each
of its writes therefore depends on the controller epoch being its own still (KAFKA-6082), and
ZooKeeper refuses it else.

A broker that was the controller once may lead partitions, and below the inter-broker protocols that
have AlterPartition or IsrChange a leader writes its ISR itself. So a change by the session that
registered the partition's leader is left out if it leaves leader and leader epoch as they are.

Meaning: Two controllers decide at the same time, and one of them by what is out of date.
Case: a change of a state by a session that is or was the controller's
Source: KAFKA-6082; `KafkaZkClient.retryRequestsUntilConnected` with `controllerZkVersionCheck`
"""

from collections.abc import Iterator
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.partition_states import PartitionHistory, PartitionVersion
from fencepost.checkers.metadata.view import MetadataView, by_partition
from fencepost.checkers.metadata.znode_sessions import Office, ZnodeSessions, znode_sessions
from fencepost.checkers.proof import Proof
from fencepost.checkers.sources import streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.QUORUM,
    needs=("transaction_log", "metadata_log"),
)
NAME: Final = ENTRY.name


def deposed_controller_writes(tables: Tables, seen: MetadataView) -> Judged:
    """Find them, by partition. Reads `transaction_log` and `metadata_log`."""
    sessions = znode_sessions(streamed(tables, "transaction_log"), seen)
    registered = {(one.broker_id, session) for one, session in sessions.registrations}

    def judged(history: PartitionHistory) -> Iterator[Proof | None]:
        for before, version in history.steps():
            session = sessions.session_of(version.metadata_offset)
            if session is None:
                continue
            held = sessions.held_before(session, version.metadata_offset)
            own = _is_kept(before, version) and (version.leader, session) in registered
            if held is not None and not own:
                yield _proof(history, version, held, sessions)

    return by_partition(NAME, seen, judged)


def _is_kept(before: PartitionVersion, version: PartitionVersion) -> bool:
    return (before.leader, before.leader_epoch) == (version.leader, version.leader_epoch)


def _proof(
    history: PartitionHistory, version: PartitionVersion, held: Office, sessions: ZnodeSessions
) -> Proof | None:
    now = sessions.office_at(version.metadata_offset)
    if now is None or now.session == held.session:
        return None
    return Proof.of(
        "broker {broker_id}, the controller of epoch {epoch} since metadata offset {elected}, "
        "wrote the state of {key} at metadata offset {metadata_offset} (leader {leader}, leader "
        "epoch {leader_epoch}, ISR {isr}), when broker {other} had been the controller of epoch "
        "{other_epoch} since metadata offset {deposed}",
        metadata_offsets={
            "elected": held.zxid,
            "deposed": now.zxid,
            "metadata_offset": version.metadata_offset,
        },
        values={
            "epoch": held.controller_epoch,
            "other_epoch": now.controller_epoch,
            "leader_epoch": version.leader_epoch,
        },
        sources=dict.fromkeys(("broker_id", "epoch"), "elected")
        | dict.fromkeys(("other", "other_epoch"), "deposed")
        | dict.fromkeys(("leader", "leader_epoch", "isr"), "metadata_offset"),
        broker_id=held.broker_id,
        key=history.key,
        leader=version.leader,
        isr=version.isr_text,
        other=now.broker_id,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=deposed_controller_writes,
    ),
)
