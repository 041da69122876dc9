"""The moves of each partition's replicas, by the metadata log: from what begins one to its end.

A partition moves while it has replicas that are being added or removed. A KRaft controller says so
in the partition's record, and one on ZooKeeper in the content of the topic (a ReassignmentRecord).
Several states follow each other in a move: the ISR changes, or its leader does.

Source: KIP-455.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fencepost.checkers.metadata.partition_states import PartitionHistory
from fencepost.checkers.metadata.records import MetadataRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementVersion:
    """A partition's replicas and its leader, from a metadata offset on."""

    metadata_offset: int
    timestamp_ms: int
    replicas: tuple[int, ...]
    """With those that are being added and removed."""
    adding: tuple[int, ...]
    removing: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int

    @property
    def moves(self) -> bool:
        """True if a move is under way."""
        return bool(self.adding or self.removing)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas without those that are being removed."""
        return tuple(one for one in self.replicas if one not in self.removing)


def placements(
    histories: Iterable[PartitionHistory], records: Iterable[MetadataRecord]
) -> Mapping[tuple[str, int], Sequence[PlacementVersion]]:
    """Return by (topic id, partition) what each was from which metadata offset on, in order."""
    given: dict[tuple[str | None, int | None], list[MetadataRecord]] = defaultdict(list)
    for record in records:
        if record.type == "ReassignmentRecord":
            given[record.topic_id, record.partition].append(record)
    return {
        (one.topic_id, one.partition): _placements(
            one, given.get((one.topic_id, one.partition), ())
        )
        for one in histories
    }


def _placements(
    history: PartitionHistory, given: Sequence[MetadataRecord]
) -> Sequence[PlacementVersion]:
    found = [
        PlacementVersion(
            metadata_offset=one.metadata_offset,
            timestamp_ms=one.timestamp_ms,
            replicas=one.replicas,
            adding=one.adding,
            removing=one.removing,
            isr=one.isr,
            leader=one.leader,
            leader_epoch=one.leader_epoch,
        )
        for one in history.versions
    ]
    for record in given:
        before = [one for one in found if one.metadata_offset < record.metadata_offset]
        if before:
            last = before[-1]
            found.insert(
                len(before),
                PlacementVersion(
                    metadata_offset=record.metadata_offset,
                    timestamp_ms=record.timestamp_ms,
                    replicas=record.replicas or (),
                    adding=record.adding or (),
                    removing=record.removing or (),
                    isr=last.isr,
                    leader=last.leader,
                    leader_epoch=last.leader_epoch,
                ),
            )
    return found
