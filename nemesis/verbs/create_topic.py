"""A topic is created by a node that is asked for it; clients need not know it.

- create_topic: {name: u, partitions: 1, replication_factor: 3, via: broker-1}
"""

from dataclasses import dataclass
from typing import Any, Final

from clusters.kafka_port import Administers, TopicSpec
from clusters.port import Cluster, NodeName
from history.failure import SpecError
from nemesis.verbs.administration import admin_verb
from nemesis.verbs.step import Bounded
from nemesis.verbs.written import Written
from nemesis.words import did_you_mean

__all__ = ["VERBS", "CreateTopic"]

_KEYS: Final = ("name", "partitions", "replication_factor", "settings", "via")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateTopic(Bounded):
    """Have a topic created."""

    topic: TopicSpec
    via: NodeName | None = None
    """The broker or controller to ask; None: the active controller."""


def _own(written: Written) -> dict[str, Any]:
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
    via = data.get("via")
    if via is not None and via not in stage.nodes:
        raise SpecError(("via",), f"no such node: {via!r}; there are: {', '.join(stage.nodes)}")
    default = min(3, len(stage.broker_ids))
    topic = TopicSpec(
        name=str(data["name"]),
        partitions=_count(data.get("partitions", 1), "partitions"),
        replication_factor=_count(data.get("replication_factor", default), "replication_factor"),
        settings={str(key): str(value) for key, value in settings.items()},
    )
    return {"topic": topic, "via": None if via is None else NodeName(str(via))}


def _count(value: object, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SpecError((key,), f"expected a number of 1 or more, found {value!r}")
    return value


def _operand(step: CreateTopic) -> object:
    topic = step.topic
    data: dict[str, object] = {
        "name": topic.name,
        "partitions": topic.partitions,
        "replication_factor": topic.replication_factor,
    }
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
        ability=Administers,
    ),
)
