"""C15b lost-reassignment: A move of replicas was acknowledged and never began.

A reassignment was acknowledged, and at no moment between its call and its return, by the log of
record, were the partition's replicas, without those being removed, the ones that it asked for; or a
cancellation was, and a move was under way at each such moment. Nothing is judged where the log
begins with a snapshot, or in a migration.

A controller answers a reassignment once its record is committed. That record states the replicas
that were asked for, those that are to go being told apart (`removing`), or nothing but them if the
move was over at once; and where they are the partition's replicas already, no record is needed.

A version of a partition is in force from the earliest moment at which its record can have been
appended to the latest at which the next one's can: the clocks of controllers and the batches of
their log widen it, never narrow it. As with other writes (`lost_metadata_write`), nothing is judged
where the log begins with a snapshot, or ends before the return, nor is a write without a clear end.

In the generation of ZooKeeper the controller writes the content of the topic before it answers
(`checkers.metadata.moves`). A migration is not judged: there moves of both generations follow each
other.

Meaning: An administrator waits in vain for a move, and may take the broker that was to be emptied
out of the cluster.
Case: an acknowledged reassignment or cancellation that the metadata log goes on beyond
Source: KIP-455; KIP-631, the controller; `ReplicationControlManager.alterPartitionReassignments`,
`KafkaController.updateCurrentReassignment`
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.moves import PlacementVersion, placements
from fencepost.checkers.metadata.partition_states import key_of, spans_in_force
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.slices import Split
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.QUORUM,
    needs=("metadata_log", "partition_writes"),
)
NAME: Final = ENTRY.name

_MOVE, _CANCEL = "reassign", "cancel-reassignment"
_COLUMNS: Final = (
    *("index", "f", "node", "topic", "partition", "replicas", "call_ns", "return_ns", "outcome"),
)

_Row = Mapping[str, Any]
_InForce = tuple[PlacementVersion, int, int]
"""A placement, and the earliest and the latest moment of it."""


def lost_reassignments(tables: Tables, seen: MetadataView) -> Judged:
    """Find acknowledged moves that never began. Reads `metadata_log` and `partition_writes`."""
    if seen.facts.migrating:
        return
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    writes_of = _acknowledged(tables["partition_writes"], until_ns=seen.known_until_ns)
    if not writes_of or seen.log.begins_with_snapshot:
        return
    known: dict[str, list[_InForce]] = defaultdict(list)
    placed = placements(seen.histories(), seen.log.records)
    for history in seen.histories():
        if history.key in writes_of:
            mine = placed[history.topic_id, history.partition]
            known[history.key] += spans_in_force(mine, seen.facts)
    for key in sorted(known):
        answers = [_judged(write, known[key]) for write in writes_of[key]]
        yield key, counted(NAME, key, answers)


def _acknowledged(writes: pa.Table, *, until_ns: int) -> Mapping[str, Sequence[_Row]]:
    """Return the moves and cancellations that are ok and that the log goes on beyond, by key."""
    kept = writes.select(_COLUMNS).filter(
        pc.and_(
            pc.and_(
                pc.is_in(writes["f"], pa.array([_MOVE, _CANCEL])), pc.equal(writes["outcome"], "ok")
            ),
            pc.fill_null(pc.less(writes["return_ns"], until_ns), fill_value=False),
        )
    )
    found: dict[str, list[_Row]] = defaultdict(list)
    for row in kept.to_pylist():
        if row["partition"] is not None and (row["f"] == _CANCEL or row["replicas"]):
            found[key_of(row["topic"], row["partition"])].append(row)
    return found


def _judged(write: _Row, known: Sequence[_InForce]) -> Proof | None:
    """Return a proof if the partition never was as an acknowledged write says."""
    for placement, from_ns, until_ns in known:
        overlaps = from_ns <= write["return_ns"] and until_ns >= write["call_ns"]
        if overlaps and _is_as_asked(placement, write):
            return None
    words = "the cancellation of a move"
    asked: dict[str, Any] = {}
    if write["f"] == _MOVE:
        words = "the move to {asked}"
        asked = {"asked": f"[{', '.join(map(str, write['replicas']))}]"}
    return Proof.of(
        words + " of {key}, called at {call}, was acknowledged by {node} at {return_} (write "
        "{write}), and by the metadata log the partition never was like that in between",
        values={"write": write["index"]},
        times={"call": write["call_ns"], "return_": write["return_ns"]},
        key=key_of(write["topic"], write["partition"]),
        node=write["node"],
        **asked,
    )


def _is_as_asked(placement: PlacementVersion, write: _Row) -> bool:
    if write["f"] == _CANCEL:
        return not placement.moves
    return {*placement.target} == {*write["replicas"]}


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=lost_reassignments,
        split=Split.PARTITIONS,
    ),
)
