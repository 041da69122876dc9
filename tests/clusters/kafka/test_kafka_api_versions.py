"""The versions of requests that brokers of a release understand."""

from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode
from kio.schema.metadata.v6 import response as oldest
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i32, i32Timedelta

from fencepost.clusters.kafka.api_versions import api_versions_of, leader_epoch_of
from fencepost.clusters.kafka.describing import metadata_items


@pytest.mark.parametrize(
    ("release", "metadata", "deletion"),
    [("2.0.0", 6, 2), ("2.1.1", 7, 2), ("3.0.2", 7, 2), ("3.1.0", 12, 6), ("3.9.2", 12, 6)],
)
def test_requests_are_of_versions_that_the_release_has(
    release: str, metadata: int, deletion: int
) -> None:
    api_versions = api_versions_of(release)
    for names in (None, ["t"]):
        asked = api_versions.metadata_request(names)
        assert (asked.__version__, api_versions.metadata.__version__) == (metadata, metadata)
        assert names is None or [one.name for one in asked.topics] == names
    asked = api_versions.deletion_request("t", timeout=i32Timedelta.parse(timedelta(seconds=1)))
    assert (asked.__version__, api_versions.deleted.__version__) == (deletion, deletion)


def test_before_2_1_a_broker_shows_no_leader_epoch() -> None:
    one = BrokerId(1)
    partition = oldest.MetadataResponsePartition(
        error_code=ErrorCode.none,
        partition_index=i32(0),
        leader_id=one,
        replica_nodes=(one,),
        isr_nodes=(one,),
    )
    topic = oldest.MetadataResponseTopic(
        error_code=ErrorCode.none, name=TopicName("t"), partitions=(partition,)
    )
    answer = api_versions_of("2.0.0").metadata(
        throttle_time=i32Timedelta.parse(timedelta(0)),
        brokers=(),
        cluster_id=None,
        controller_id=one,
        topics=(topic,),
    )
    assert leader_epoch_of(partition) == -1
    (item,) = metadata_items(answer)
    assert (item["leader_epoch"], item["topic_id"], item["isr"]) == (None, None, [1])
