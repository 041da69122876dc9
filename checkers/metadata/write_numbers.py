"""The numbers that writes to a topic carry, by which a write that is not in its table is missed.

The number that a write to a topic carries is the count of the client's writes to that name before
it, growths and failed ones included (`workloads/generators/topic_lives.py`). A number larger than
the count of those that the tables have proves that one is missing. Nothing proves that the last
write to a name is missing; but no run loses only these.
"""

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.checkers.rows import places_in_runs

_GROWTH: Final = "create-partitions"
_COLUMNS: Final = ("topic", "call_ns", "f")


def skipped_write(topic_writes: pa.Table, partition_writes: pa.Table) -> str:
    """Return where a write carries a larger number than there are writes to its topic before it.

    METADATA_WRITES and PARTITION_WRITES; empty if nowhere.
    """
    growths = partition_writes.filter(pc.equal(partition_writes["f"], _GROWTH))
    writes = pa.concat_tables(
        [
            topic_writes.select([*_COLUMNS, "config_value"]),
            growths.select(_COLUMNS).append_column(
                topic_writes.schema.field("config_value"), pa.nulls(len(growths), pa.int64())
            ),
        ]
    ).sort_by([("topic", "ascending"), ("call_ns", "ascending")])
    count = places_in_runs(writes["topic"].combine_chunks().dictionary_encode().indices.to_numpy())
    number = pc.fill_null(writes["config_value"], -1).to_numpy()
    places = np.flatnonzero(number > count)
    if not len(places):
        return ""
    row = writes.slice(int(places[0]), 1).to_pylist()[0]
    return (
        f"the write of {row['config_value']} to {row['topic']} carries the count of those before "
        f"it, and {count[places[0]]} are recorded"
    )
