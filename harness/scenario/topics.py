"""The words under `topics`: partitions, copies, and where these lie."""

from collections.abc import Mapping
from typing import Any

from clusters.kafka_port import BrokersSpec, TopicSpec
from harness.scenario.validation import MappingReader, build, mapping, settings
from history.failure import Mistakes, SpecError

__all__ = ["parse_topics"]


def parse_topics(value: object, cluster: BrokersSpec) -> tuple[TopicSpec, ...]:
    """Return the topics of a cluster; raise SpecError with the paths to what cannot be."""
    if not isinstance(value, list) or not value:
        raise SpecError((), "expected a list of topics, e.g. [{name: t, partitions: 6}]")
    topics: list[TopicSpec] = []
    mistakes = Mistakes()
    for index, item in enumerate(value):
        with mistakes.below(index):
            topic = _topic(item, brokers=cluster.brokers)
            if topic.name in {other.name for other in topics}:
                raise SpecError(("name",), f"topic {topic.name!r} stands here twice")
            topics.append(topic)
    mistakes.refuse()
    return tuple(topics)


def _topic(item: object, *, brokers: int) -> TopicSpec:
    read = MappingReader(mapping(item, example="{name: t, partitions: 6}"))
    data = {**read.data, "settings": read.at("settings", settings, otherwise=dict[str, str]())}
    if "replicas" in data:
        if "partitions" in data or "replication_factor" in data:
            raise SpecError(("replicas",), "replicas already say how many partitions and copies")
        data["replication_factor"] = read.at("replicas", _copies, otherwise=1)
    data.setdefault("replication_factor", min(3, brokers))
    return read.mistakes.refuse_after(lambda: _placed(data, brokers))


def _copies(replicas: object) -> int:
    """Return the largest number of copies among these replicas, as far as they are lists."""
    lists = replicas if isinstance(replicas, list) else []
    return max((len(one) for one in lists if isinstance(one, list)), default=0)


def _placed(data: Mapping[str, Any], brokers: int) -> TopicSpec:
    topic = build(TopicSpec, data, called={"assignment": "replicas"})
    mistakes, copies = Mistakes(), topic.replication_factor
    if not 1 <= copies <= brokers:
        found = f"1 to {brokers} copies on {brokers} brokers, found {copies}"
        mistakes.note(("replication_factor",), found)
    if topic.partitions < 1:
        mistakes.note(("partitions",), f"1 or more partitions, found {topic.partitions}")
    for index, replicas in enumerate(topic.assignment or ()):
        if len(set(replicas)) != len(replicas) or not set(replicas) <= set(range(1, brokers + 1)):
            found = f"different brokers of 1 to {brokers}, found {list(replicas)}"
            mistakes.note(("replicas", index), found)
    mistakes.refuse()
    return topic
