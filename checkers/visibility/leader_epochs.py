"""Leader epochs in reads of metadata: within one topic id they only grow (`growing`).

No write has to be known. So it also covers the topics of records, which the harness watches.
"""

import pyarrow as pa
import pyarrow.compute as pc

from checkers.visibility.growing import compared_count, stretches, went_back
from checkers.visibility.lacking import Lacking

__all__ = ["epochs_that_went_back"]


def epochs_that_went_back(describes: pa.Table, *, across: bool) -> tuple[list[Lacking], int]:
    """Find reads that went back, and how many sightings were compared.

    `across`: against reads through other brokers, else through the same one.
    """
    kept = describes.filter(
        pc.and_(
            pc.is_valid(describes["topic_id"]),
            pc.greater_equal(pc.fill_null(describes["leader_epoch"], -1), 0),
        )
    )
    partitions = list(stretches(kept, ("topic", "topic_id", "partition"), then="read"))
    found = [
        lacking
        for partition in partitions
        for lacking in went_back(
            f"{partition['topic'][0]}-{partition['partition'][0]}",
            partition,
            number="leader_epoch",
            across=across,
            words=lambda leader_epoch: f"leader epoch {leader_epoch}",
        )
    ]
    return found, sum(compared_count(partition, across=across) for partition in partitions)
