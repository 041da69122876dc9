"""C10 unsafe-leader-candidate: A member of the ISR or ELR lacks a committed record.

In the end, the log of a member of a partition's ISR or ELR ends below the highest high watermark
that any of its replicas has checkpointed. A member whose log could not be read whole is unknown. Or
along the way, with acks=all: a member fetched from the offset of a record that had been
acknowledged, or below; or a record was sent after another one had been acknowledged, and was
acknowledged at its offset or below.

The controller elects out of the ISR, and on newer clusters out of the eligible leader replicas
(KIP-966). A replica's checkpointed high watermark says that all records below it were committed.
After an election that was recorded as unclean this is legal. Of the run's own partitions, a member
whose log could not be read whole is a doubt.

See `replicas.along_the_way` for the rules that are judged along the way.

A case is a member of the last ISR or ELR whose log was read; or, after anything was acknowledged, a
leader epoch in which more was, or a Fetch of a member.

Meaning: When it is elected, acknowledged records are gone.
Case: a member of an ISR or ELR at the end of the run; along the way, a leader that took records, or
a member's Fetch
Source: KIP-966; Kafka's documentation, Replication
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow.compute as pc

from fencepost.checkers.anomaly import Found
from fencepost.checkers.entry import CatalogueEntry, Nearness, Strength
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.partition_states import PartitionHistory
from fencepost.checkers.metadata.view import MetadataView, doubtful, spelled
from fencepost.checkers.proof import Proof
from fencepost.checkers.replicas.along_the_way import course_of, lacking_leaders, lacking_members
from fencepost.checkers.replicas.log_ends import FETCH
from fencepost.checkers.replicas.replica_logs import UNCLEAN
from fencepost.checkers.replicas.sends import acknowledged, sends_by_key
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REMAINS,
    strength=Strength.ALLOWED_IF,
    allowed_if=UNCLEAN,
    needs=("metadata_log", "replicas"),
)
NAME: Final = ENTRY.name


def unsafe_candidates(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each key of a bucket. Reads `records`, `metadata_log`, `replicas` and `wire`."""
    keys = list(sends_by_key(tables))
    if not keys:
        return
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    doubt = seen.doubt_at_the_end()
    for key in keys:
        histories = seen.histories_of(key)
        for history in histories:
            way = _along_the_way(history, tables, seen) if len(histories) == 1 else []
            end = [] if doubt or history.deleted else _in_the_end(history, tables, seen)
            lacks = "" if history.deleted else doubt or _unread(history, tables, seen)
            yield key, _found(history, [*end, *way], doubt=lacks)


def _found(history: PartitionHistory, answers: Sequence[Proof | None], *, doubt: str) -> Found:
    proofs = [answer for answer in answers if answer is not None]
    return spelled(
        NAME,
        history.key,
        proofs,
        cases=len(answers),
        doubt=doubt,
        allowed_count=len(proofs) if history.elected_uncleanly else 0,
    )


def _along_the_way(
    history: PartitionHistory, tables: Tables, seen: MetadataView
) -> list[Proof | None]:
    if seen.facts.acks != "all":
        return []
    course = course_of(history, tables, seen)
    return [*lacking_leaders(course), *lacking_members(course)]


def _in_the_end(
    history: PartitionHistory, tables: Tables, seen: MetadataView
) -> list[Proof | None]:
    return list(_candidates(history, _rows(history, tables), seen))


def _rows(history: PartitionHistory, tables: Tables) -> list[Mapping[str, Any]]:
    of_key = tables["replicas"].filter(pc.equal(tables["replicas"]["key"], history.key))
    # Before 2.8 no disk states a topic id.
    return [row for row in of_key.to_pylist() if row["topic_id"] in (None, history.topic_id)]


def _unread(history: PartitionHistory, tables: Tables, seen: MetadataView) -> str:
    nodes = seen.facts.nodes_at_the_end()
    whole = {row["node"] for row in _rows(history, tables) if not row["damage"]}
    unread = [one for one in (*history.last.isr, *history.last.elr) if nodes.get(one) not in whole]
    if not unread:
        return ""
    return f"the log of broker {unread[0]}, a candidate of {history.key}, could not be read whole"


def _candidates(
    history: PartitionHistory, rows: Sequence[Mapping[str, Any]], seen: MetadataView
) -> Iterator[Proof | None]:
    """Yield for each member the proof that it lacks a record, or None."""
    last = history.last
    marked = [row for row in rows if row["high_watermark"] is not None]
    highest = max(marked, key=lambda row: row["high_watermark"], default=None)
    ids = {node: broker_id for broker_id, node in seen.facts.nodes_at_the_end().items()}
    for row in rows:
        broker_id = ids.get(row["node"], -1)
        among = "ISR" if broker_id in last.isr else "ELR" if broker_id in last.elr else ""
        if not among or highest is None or row["damage"]:
            continue
        if row["log_end_offset"] >= highest["high_watermark"]:
            yield None
        else:
            yield Proof.of(
                "{node} is in the {among} of {key} at metadata offset {metadata_offset}, and "
                "its log ends at {log_end_offset}, below the high watermark "
                "{high_watermark} that {highest_node} has checkpointed",
                offsets={
                    "log_end_offset": row["log_end_offset"],
                    "high_watermark": highest["high_watermark"],
                },
                metadata_offsets={"metadata_offset": last.metadata_offset},
                values={"broker_id": broker_id},
                node=row["node"],
                among=among,
                key=history.key,
                highest_node=highest["node"],
            )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=unsafe_candidates,
        tables=("records", "metadata_log", "replicas", "wire"),
        split=Split.RECORDS,
        apis=(FETCH,),
        records=acknowledged,
    ),
)
