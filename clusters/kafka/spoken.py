"""The versions of requests that brokers of a release understand.

The newest that the harness knows do for every release from 3.1 on: topics have ids there. Those of
2.1 do for all releases.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from kio.schema.create_topics.v3 import request as plain_creation
from kio.schema.create_topics.v3 import response as plain_created
from kio.schema.create_topics.v7 import request as creation
from kio.schema.create_topics.v7 import response as created
from kio.schema.delete_topics.v3.request import DeleteTopicsRequest as PlainDeletion
from kio.schema.delete_topics.v3.response import DeleteTopicsResponse as PlainDeleted
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.delete_topics.v6.response import DeleteTopicsResponse
from kio.schema.metadata.v7.request import MetadataRequest as PlainRequest
from kio.schema.metadata.v7.request import MetadataRequestTopic as PlainTopic
from kio.schema.metadata.v7.response import MetadataResponse as PlainResponse
from kio.schema.metadata.v12.request import MetadataRequest, MetadataRequestTopic
from kio.schema.metadata.v12.response import MetadataResponse
from kio.schema.types import TopicName
from kio.static.primitive import i32Timedelta

from clusters.provision.releases import version_numbers

__all__ = ["NEWEST", "OLDEST", "Spoken", "spoken_by"]

_TOPIC_IDS: Final = (3, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoken:
    """The versions of the requests with which a cluster is started and looked at."""

    creation: ModuleType
    """Of a request that creates topics."""
    created: ModuleType
    """Of its answer."""
    deleted: type[Any]
    """The answer to a request that deletes topics."""
    metadata: type[Any]
    """The answer that metadata comes in."""
    has_topic_ids: bool

    def asking_deletion(self, name: str, *, timeout: i32Timedelta) -> Any:
        """Return the request that deletes the topic of this name."""
        topic = TopicName(name)
        if not self.has_topic_ids:
            return PlainDeletion(topic_names=(topic,), timeout=timeout)
        state = DeleteTopicState(name=topic, topic_id=None)
        return DeleteTopicsRequest(topics=(state,), timeout=timeout)

    def asking_metadata(self, names: Sequence[str] | None) -> Any:
        """Return the request for the metadata of these topics; None: of all."""
        if not self.has_topic_ids:
            topics = None if names is None else [PlainTopic(name=TopicName(one)) for one in names]
            return PlainRequest(
                topics=None if topics is None else tuple(topics), allow_auto_topic_creation=False
            )
        asked = (
            None
            if names is None
            else [MetadataRequestTopic(topic_id=None, name=TopicName(one)) for one in names]
        )
        return MetadataRequest(
            topics=None if asked is None else tuple(asked),
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
        )


NEWEST: Final = Spoken(
    creation=creation,
    created=created,
    deleted=DeleteTopicsResponse,
    metadata=MetadataResponse,
    has_topic_ids=True,
)
OLDEST: Final = Spoken(
    creation=plain_creation,
    created=plain_created,
    deleted=PlainDeleted,
    metadata=PlainResponse,
    has_topic_ids=False,
)


def spoken_by(version: str) -> Spoken:
    """Return the versions that brokers of a release understand."""
    return NEWEST if version_numbers(version) >= _TOPIC_IDS else OLDEST
