"""The versions of requests that brokers of a release understand.

The newest that the harness knows do for every release from 3.1 on: topics have ids there. Those of
2.0 would do for all releases; from 2.1 on brokers show leader epochs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Final

from kio.schema.create_topics.v3 import request as plain_creation
from kio.schema.create_topics.v3 import response as plain_created
from kio.schema.create_topics.v7 import request as creation
from kio.schema.create_topics.v7 import response as created
from kio.schema.delete_topics.v2.request import DeleteTopicsRequest as PlainDeletion
from kio.schema.delete_topics.v2.response import DeleteTopicsResponse as PlainDeleted
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.metadata.v6 import request as oldest_asked
from kio.schema.metadata.v6 import response as oldest_shown
from kio.schema.metadata.v7 import request as plain_asked
from kio.schema.metadata.v7 import response as plain_shown
from kio.schema.metadata.v12 import request as asked
from kio.schema.metadata.v12 import response as shown
from kio.schema.types import TopicName
from kio.static.primitive import i32Timedelta

from fencepost.clusters.provision.releases import version_numbers

_TOPIC_IDS: Final = (3, 1)
_LEADER_EPOCHS: Final = (2, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersions:
    """The versions of the requests with which a cluster is started and looked at."""

    creation: ModuleType
    """Of a request that creates topics."""
    created: ModuleType
    """Of its answer."""
    deleted: type[Any]
    """The answer to a request that deletes topics."""
    asked: ModuleType
    """Of a request for metadata."""
    metadata: type[Any]
    """The answer that metadata comes in."""
    has_topic_ids: bool

    def deletion_request(self, name: str, *, timeout: i32Timedelta) -> Any:
        """Return the request that deletes the topic of this name."""
        topic = TopicName(name)
        if not self.has_topic_ids:
            return PlainDeletion(topic_names=(topic,), timeout=timeout)
        state = DeleteTopicState(name=topic, topic_id=None)
        return DeleteTopicsRequest(topics=(state,), timeout=timeout)

    def metadata_request(self, names: Sequence[str] | None) -> Any:
        """Return the request for the metadata of these topics; None: of all."""
        of_topic = {"topic_id": None} if self.has_topic_ids else {}
        of_request = {"include_topic_authorized_operations": False} if self.has_topic_ids else {}
        topics = None
        if names is not None:
            topic = self.asked.MetadataRequestTopic
            topics = tuple(topic(name=TopicName(one), **of_topic) for one in names)
        return self.asked.MetadataRequest(
            topics=topics, allow_auto_topic_creation=False, **of_request
        )


NEWEST: Final = ApiVersions(
    creation=creation,
    created=created,
    deleted=DeleteTopicsResponse,
    asked=asked,
    metadata=shown.MetadataResponse,
    has_topic_ids=True,
)
_WITHOUT_IDS: Final = ApiVersions(
    creation=plain_creation,
    created=plain_created,
    deleted=PlainDeleted,
    asked=plain_asked,
    metadata=plain_shown.MetadataResponse,
    has_topic_ids=False,
)
_OLDEST: Final = replace(_WITHOUT_IDS, asked=oldest_asked, metadata=oldest_shown.MetadataResponse)


def api_versions_of(version: str) -> ApiVersions:
    """Return the versions that brokers of a release understand."""
    numbers = version_numbers(version)
    if numbers >= _TOPIC_IDS:
        return NEWEST
    return _WITHOUT_IDS if numbers >= _LEADER_EPOCHS else _OLDEST


def leader_epoch_of(partition: Any) -> int:
    """Return the leader epoch in which a broker shows a partition; before 2.1 that is -1."""
    return int(getattr(partition, "leader_epoch", -1))
