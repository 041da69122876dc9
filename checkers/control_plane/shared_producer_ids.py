"""C24 shared-producer-ids: Brokers were given the same producer ids.

Two answers to AllocateProducerIds, without an error, name the same first id of a block.

A broker asks the controller for a block of producer ids, and hands them to its producers one by
one. The answer names the first of the block. No two answers name the same one: the controller
writes down which block it gave before it answers, into the metadata log or, by compare-and-set,
into a znode of ZooKeeper's. `illegal-transition` judges that log; what brokers were told is judged
here, in both generations and across a migration.

Not seen: blocks that overlap without the same first id, since answers are not on the tape with the
block's length.

Meaning: Two producers have one id: a broker takes the records of one for those of the other sent
again, and drops them, or fences it.
Case: a block of producer ids that a broker was given
Source: KIP-730; KAFKA-15552
"""

from collections.abc import Iterator
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.rpcs import Rpc, rpcs
from fencepost.checkers.metadata.view import METADATA, MetadataView, counted
from fencepost.checkers.proof import Proof
from fencepost.checkers.sources import Source, streamed
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.REQUEST,
    culprit=("controller:ProducerIdsRecord",),
    needs=("wire",),
)
NAME: Final = ENTRY.name
_API: Final = "AllocateProducerIds"


def shared_producer_ids(tables: Tables, seen: MetadataView) -> Judged:
    """Judge each block that a broker was told. Reads `wire`."""
    del seen
    yield METADATA, counted(NAME, METADATA, _answers(streamed(tables, "wire")))


def _answers(wire: Source) -> Iterator[Proof | None]:
    given: dict[int, Rpc] = {}
    for rpc in rpcs(wire, _API):
        first_id = rpc.answered("producer_id") if rpc.ok else None
        if first_id is None:
            continue
        before = given.setdefault(first_id, rpc)
        is_same = before.answer_frame == rpc.answer_frame
        yield None if is_same else _proof(first_id, before, rpc)


def _proof(first_id: int, before: Rpc, rpc: Rpc) -> Proof:
    return Proof.of(
        "{source} was given the producer ids from {first_id} on by {target} at {answered} (frame "
        "{frame}), and {other_source} by {other_target} at {other_answered} (frame {other_frame})",
        values={"first_id": first_id},
        frames={"frame": before.answer_frame, "other_frame": rpc.answer_frame},
        times={"answered": before.answered_ns, "other_answered": rpc.answered_ns},
        sources={"first_id": "frame", "answered": "frame", "other_answered": "other_frame"},
        source=before.source,
        target=before.target,
        other_source=rpc.source,
        other_target=rpc.target,
    )


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=shared_producer_ids,
        apis=(_API,),
    ),
)
