"""The words under `topics`: partitions, copies, and where these lie."""

from clusters.kafka_port import KafkaSpec, TopicSpec
from harness.scenario.validation import at, build, mapping, refuse_unknown, settings
from history.failure import SpecError

__all__ = ["parse_topics"]


def parse_topics(value: object, cluster: KafkaSpec) -> tuple[TopicSpec, ...]:
    """The topics of a cluster. SpecError with the path to what cannot be."""
    if not isinstance(value, list) or not value:
        raise SpecError((), "expected a list of topics, e.g. [{name: t, partitions: 6}]")
    topics = []
    for index, item in enumerate(value):
        try:
            topics.append(_topic(item, brokers=cluster.brokers))
        except SpecError as error:
            raise error.below(index) from None
        if topics[-1].name in {topic.name for topic in topics[:-1]}:
            raise SpecError((index, "name"), f"topic {topics[-1].name!r} stands here twice")
    return tuple(topics)


def _topic(item: object, *, brokers: int) -> TopicSpec:
    data = mapping(item, example="{name: t, partitions: 6}")
    refuse_unknown(data, ["name", "partitions", "replication_factor", "replicas", "settings"])
    data["settings"] = at("settings", data, settings)
    if "replicas" in data:
        if "partitions" in data or "replication_factor" in data:
            raise SpecError(("replicas",), "replicas already say how many partitions and copies")
        data["assignment"] = data.pop("replicas")
        data["replication_factor"] = max(map(len, data["assignment"] or [[]]))
    data.setdefault("replication_factor", min(3, brokers))
    try:
        topic = build(TopicSpec, data)
    except SpecError as error:
        path = ("replicas",) if error.path[:1] == ("assignment",) else error.path
        raise SpecError(path, error.message) from None
    _refuse_placement(topic, brokers)
    return topic


def _refuse_placement(topic: TopicSpec, brokers: int) -> None:
    if not 1 <= topic.replication_factor <= brokers:
        raise SpecError(
            ("replication_factor",),
            f"1 to {brokers} copies on {brokers} brokers, found {topic.replication_factor}",
        )
    if topic.partitions < 1:
        raise SpecError(("partitions",), f"1 or more partitions, found {topic.partitions}")
    for index, replicas in enumerate(topic.assignment or ()):
        if len(set(replicas)) != len(replicas) or not set(replicas) <= set(range(1, brokers + 1)):
            raise SpecError(
                ("replicas", index), f"different brokers of 1 to {brokers}, found {list(replicas)}"
            )
