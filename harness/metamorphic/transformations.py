"""What may be done to a stored run without making its cluster guilty of anything.

Some change nothing that counts (names, the clock's zero): a verdict stays as it is. Others take
evidence away or put it out of order: a valid verdict may become unknown. None may become invalid,
whatever is drawn.

Source: metamorphic testing (Chen et al., 2018).
"""

from functools import partial
from random import Random
from typing import Final

import pyarrow as pa

from fencepost.harness.metamorphic.copied_run import CopiedRun
from fencepost.harness.metamorphic.lost_evidence import (
    acknowledgements_lost,
    broker_off_tape,
    bucket_lost,
    cut_short,
    describes_lost,
    frames_lost,
    head_of_tape_lost,
    hole_in_tape,
    metadata_writes_lost,
    records_lost,
    requests_lost,
    tail_of_tape_lost,
)
from fencepost.harness.metamorphic.other_names import nodes_renamed, topics_renamed
from fencepost.harness.metamorphic.other_times import (
    answers_late,
    begun_earlier,
    clocks_apart,
    on_another_day,
)
from fencepost.harness.metamorphic.transformation import Transformation


def _permuted(run: CopiedRun, draw: Random, *, name: str) -> bool:
    def shuffled(rows: pa.Table) -> pa.Table:
        order = list(range(len(rows)))
        draw.shuffle(order)
        return rows.take(pa.array(order, pa.int64()))

    return run.has(name) and run.change(name, shuffled)


def _told_twice(run: CopiedRun, draw: Random) -> bool:
    def twice(rows: pa.Table) -> pa.Table:
        places = [
            place for place in range(len(rows)) for _ in range(1 + (draw.random() < _TWICE_SHARE))
        ]
        return rows.take(pa.array(places, pa.int64()))

    return run.has("wire") and run.change("wire", twice)


_TWICE_SHARE: Final = 0.01

TRANSFORMATIONS: Final = (
    Transformation(
        name="another-day",
        title="it was another day by every wall clock",
        change=on_another_day,
        keeps=True,
    ),
    Transformation(
        name="begun-earlier",
        title="every time of the run's clock is an hour later",
        change=begun_earlier,
    ),
    Transformation(
        name="nodes-renamed",
        title="every node has another number in its name",
        change=nodes_renamed,
        keeps=True,
    ),
    Transformation(
        name="topics-renamed",
        title="every topic of the clients has another name",
        change=topics_renamed,
        keeps=True,
    ),
    Transformation(
        name="answers-late",
        title="answers that renew no lease stay at the proxy for up to 0.2 s, and others pass them",
        change=answers_late,
    ),
    Transformation(
        name="clocks-apart",
        title="the wall clocks of the controllers differ by up to 30 ms",
        change=clocks_apart,
    ),
    Transformation(
        name="frames-twice", title="one frame in a hundred stands twice", change=_told_twice
    ),
    Transformation(
        name="tape-permuted",
        title="the tape is in no order",
        change=partial(_permuted, name="wire"),
    ),
    Transformation(
        name="describes-permuted",
        title="the describes are in no order",
        change=partial(_permuted, name="describes"),
    ),
    Transformation(
        name="log-permuted",
        title="the records of the metadata logs are in no order",
        change=partial(_permuted, name="metadata_log"),
    ),
    Transformation(
        name="frames-lost", title="one frame in a hundred is not on the tape", change=frames_lost
    ),
    Transformation(
        name="requests-lost",
        title="three in ten requests of one kind are not on the tape",
        change=requests_lost,
    ),
    Transformation(
        name="head-of-tape-lost",
        title="the first tenth of the tape is gone",
        change=head_of_tape_lost,
    ),
    Transformation(
        name="tail-of-tape-lost",
        title="the last tenth of the tape is gone",
        change=tail_of_tape_lost,
    ),
    Transformation(
        name="hole-in-tape", title="a tenth of the tape is gone somewhere", change=hole_in_tape
    ),
    Transformation(
        name="broker-off-tape", title="one broker is not on the tape", change=broker_off_tape
    ),
    Transformation(
        name="describes-lost", title="one describe in a hundred is gone", change=describes_lost
    ),
    Transformation(
        name="acknowledgements-lost",
        title="one acknowledgement in twenty never came",
        change=acknowledgements_lost,
    ),
    Transformation(
        name="metadata-writes-lost",
        title="every second write of metadata is gone",
        change=metadata_writes_lost,
    ),
    Transformation(
        name="records-lost", title="one row in a hundred of `records` is gone", change=records_lost
    ),
    Transformation(
        name="bucket-lost",
        title="one file of the replicas' records is empty",
        change=bucket_lost,
    ),
    Transformation(name="cut-short", title="the recording ends at some moment", change=cut_short),
)
"""All of them, in the order in which they are told."""
