"""The run of the story that the tests of the timeline and of traces share."""

from synthetic_cluster import (
    NODE_IDS,
    ORIGIN_UTC_NS,
    STORY_FAULTS,
    STORY_PLAY,
    story_log,
    story_tape,
)
from synthetic_run import VERDICT, RunSpec

STORY = RunSpec(
    seconds=24,
    rate=20,
    faults=STORY_FAULTS,
    verdict=VERDICT,
    wire=story_tape().table(),
    metadata_log=story_log().table(),
    node_ids=NODE_IDS,
    origin_utc_ns=ORIGIN_UTC_NS,
    play=STORY_PLAY,
)
HELD_AT = 6.731
"""When the AlterPartition was sent that was held, in seconds."""
