"""A topic is created by a node that is asked for it; clients need not know it.

- create_topic: {name: u, partitions: 1, replication_factor: 3, via: broker-1}
- create_topic: {name: u, replicas: [[1, 2]]}     # the preferred leader first
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fencepost.clusters.kafka_port import Administers
from fencepost.clusters.port import Cluster, NodeName
from fencepost.clusters.stage import Stage
from fencepost.clusters.topic_spec import TopicSpec
from fencepost.history.failure import SpecError
from fencepost.nemesis.verbs.administration import admin_verb, broker_of
from fencepost.nemesis.verbs.step import Bounded
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.words import did_you_mean, property_texts

_KEYS: Final = ("name", "partitions", "replication_factor", "replicas", "settings", "via")
_COUNTS: Final = ("partitions", "replication_factor")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic(Bounded):
    """Have a topic created."""

    topic: TopicSpec
    via: NodeName | None = None
    """The broker or controller to ask; None: the active controller."""


def _own(written: StepSource) -> dict[str, Any]:
    data, stage = written.operand, written.stage
    if not isinstance(data, dict) or not data:
        raise SpecError((), "create_topic takes keys and values, e.g. {name: u}")
    for key in data:
        if key not in _KEYS:
            raise SpecError((str(key),), f"unknown key {key!r}; {did_you_mean(key, _KEYS)}")
    if not isinstance(data.get("name"), str):
        raise SpecError((), "a topic needs a name")
    settings = data.get("settings", {})
    if not isinstance(settings, dict):
        raise SpecError(("settings",), f"expected keys and values, found {settings!r}")
    try:
        texts = property_texts(settings)
    except SpecError as error:
        raise error.below("settings") from None
    via = data.get("via")
    if via is not None and via not in stage.nodes:
        raise SpecError(("via",), f"no such node: {via!r}; there are: {', '.join(stage.nodes)}")
    default = min(3, len(stage.broker_ids))
    topic = TopicSpec(
        name=str(data["name"]),
        partitions=_count(data.get("partitions", 1), "partitions"),
        replication_factor=_count(data.get("replication_factor", default), "replication_factor"),
        assignment=_assignment(data, stage),
        settings=texts,
    )
    topic.check()
    return {"topic": topic, "via": None if via is None else NodeName(str(via))}


def _assignment(data: Mapping[str, object], stage: Stage) -> tuple[tuple[int, ...], ...] | None:
    if "replicas" not in data:
        return None
    for key in _COUNTS:
        if key in data:
            raise SpecError((key,), f"`replicas` implies {key}: leave {key} out")
    partitions = data["replicas"]
    if not isinstance(partitions, list) or not partitions or not all(map(_is_list, partitions)):
        raise SpecError(
            ("replicas",), f"expected the brokers of each partition, [[1, 2]], found {partitions!r}"
        )
    return tuple(tuple(broker_of(one, stage) for one in replicas) for replicas in partitions)


def _is_list(value: object) -> bool:
    return isinstance(value, list) and bool(value)


def _count(value: object, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SpecError((key,), f"expected a number of 1 or more, found {value!r}")
    return value


def _operand(step: CreateTopic) -> object:
    topic = step.topic
    data: dict[str, object] = {"name": topic.name}
    if topic.assignment is None:
        data |= {
            "partitions": topic.partitions,
            "replication_factor": topic.replication_factor,
        }
    else:
        data["replicas"] = [list(replicas) for replicas in topic.assignment]
    if topic.settings:
        data["settings"] = dict(topic.settings)
    if step.via is not None:
        data["via"] = str(step.via)
    return data


def _do(cluster: Cluster, step: CreateTopic) -> None:
    assert isinstance(cluster, Administers)
    cluster.create_topic(step.topic, via=step.via, within_s=step.within_s)


VERBS = (
    admin_verb(
        "create_topic",
        ("create_topic: {name: u}",),
        CreateTopic,
        own=_own,
        operand=_operand,
        do=_do,
        follow=lambda step, predicted: predicted.create_topic(step.topic.name),
        ability=Administers,
    ),
)
