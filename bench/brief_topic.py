"""A topic that a benchmark fills at full speed, on a cluster that soon deletes what was written.

A run writes some 100 MB a second and replica; the last few hundred are kept.
"""

from typing import Final

from fencepost.clusters.kafka_port import KafkaSpec
from fencepost.clusters.topic_spec import TopicSpec

BRIEF: Final = KafkaSpec(settings={"log.retention.check.interval.ms": "1000"})


def brief_topic(*, partitions: int) -> TopicSpec:
    """Return the topic, of this many partitions."""
    settings = {
        "segment.bytes": str(32 << 20),
        "retention.bytes": str(32 << 20),
        "file.delete.delay.ms": "0",
    }
    return TopicSpec(name="bench", partitions=partitions, settings=settings)
