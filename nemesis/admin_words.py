"""What an operator would ask of the cluster in the middle of a play.

- create_topic: {name: u, partitions: 1, replication_factor: 3, via: broker-1}
- move_leader: {t-0: 2}          # reassign so that 2 is preferred, then elect it
- reassign: {t-0: [1, 2, 4]}
- finalise: '4.3'                # the metadata.version, and with it the levels of all features
- add: broker-4                  # a node that is no member: a spare one, or one that was removed
- remove: [broker-1]
"""

from collections.abc import Mapping
from typing import Final

from clusters.port import NodeName, TopicSpec
from history.failure import SpecError
from nemesis.release_words import parse_version
from nemesis.stage import Stage
from nemesis.steps import (
    AddNodes,
    Admin,
    CreateTopic,
    Finalise,
    MoveLeader,
    Reassign,
    RemoveNodes,
)
from nemesis.words import did_you_mean, duration_text

__all__ = ["ADMIN_WORDS", "admin_data", "parse_admin"]

ADMIN_WORDS: Final = ("create_topic", "move_leader", "reassign", "finalise", "add", "remove")
_TOPIC_KEYS: Final = ("name", "partitions", "replication_factor", "settings", "via")


def parse_admin(
    word: str, operand: object, stage: Stage, *, within_s: float, at_s: float | None
) -> Admin:
    """The step. SpecError with the path to what cannot be."""
    match word:
        case "finalise":
            return Finalise(version=parse_version(operand), within_s=within_s, at_s=at_s)
        case "add":
            return AddNodes(nodes=_nodes(operand, stage), within_s=within_s, at_s=at_s)
        case "remove":
            return RemoveNodes(nodes=_nodes(operand, stage), within_s=within_s, at_s=at_s)
        case _:
            return _of_topics(word, operand, stage, within_s=within_s, at_s=at_s)


def _of_topics(
    word: str, operand: object, stage: Stage, *, within_s: float, at_s: float | None
) -> Admin:
    if not isinstance(operand, dict) or not operand:
        raise SpecError((), f"{word} takes keys and values, e.g. {_example(word)}")
    if word == "create_topic":
        return _create_topic(operand, stage, within_s=within_s, at_s=at_s)
    for key in operand:
        if key not in stage.keys:
            raise SpecError((), f"no such partition: {key!r}; there are: {', '.join(stage.keys)}")
    if word == "move_leader":
        leaders = {str(key): _broker(value, stage) for key, value in operand.items()}
        return MoveLeader(leaders=leaders, within_s=within_s, at_s=at_s)
    replicas = {str(key): _brokers(value, stage) for key, value in operand.items()}
    return Reassign(replicas=replicas, within_s=within_s, at_s=at_s)


def admin_data(step: Admin) -> dict[str, object]:
    """The step as a play writes it; `parse_admin` reads it back."""
    within: dict[str, object] = {"within": duration_text(step.within_s)}
    match step:
        case CreateTopic(topic=topic, via=via):
            data: dict[str, object] = {
                "name": topic.name,
                "partitions": topic.partitions,
                "replication_factor": topic.replication_factor,
            }
            if topic.settings:
                data["settings"] = dict(topic.settings)
            if via is not None:
                data["via"] = str(via)
            return within | {"create_topic": data}
        case MoveLeader(leaders=leaders):
            return within | {"move_leader": dict(leaders)}
        case Reassign(replicas=replicas):
            listed = {key: list(brokers) for key, brokers in replicas.items()}
            return within | {"reassign": listed}
        case Finalise(version=version):
            return within | {"finalise": version}
        case AddNodes(nodes=nodes):
            return within | {"add": _nodes_data(nodes)}
        case RemoveNodes(nodes=nodes):
            return within | {"remove": _nodes_data(nodes)}


def _create_topic(
    data: Mapping[str, object], stage: Stage, *, within_s: float, at_s: float | None
) -> CreateTopic:
    for key in data:
        if key not in _TOPIC_KEYS:
            raise SpecError((str(key),), f"unknown key {key!r}; {did_you_mean(key, _TOPIC_KEYS)}")
    if not isinstance(data.get("name"), str):
        raise SpecError((), "a topic needs a name")
    settings = data.get("settings", {})
    if not isinstance(settings, dict):
        raise SpecError(("settings",), f"expected keys and values, found {settings!r}")
    default = min(3, len(stage.broker_ids))
    topic = TopicSpec(
        name=str(data["name"]),
        partitions=_count(data.get("partitions", 1), "partitions"),
        replication_factor=_count(data.get("replication_factor", default), "replication_factor"),
        settings={str(key): str(value) for key, value in settings.items()},
    )
    return CreateTopic(topic=topic, via=_node(data.get("via"), stage), within_s=within_s, at_s=at_s)


def _count(value: object, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SpecError((key,), f"expected a number of 1 or more, found {value!r}")
    return value


def _node(value: object, stage: Stage) -> NodeName | None:
    if value is None:
        return None
    if value not in stage.nodes:
        raise SpecError(("via",), f"no such node: {value!r}; there are: {', '.join(stage.nodes)}")
    return NodeName(str(value))


def _nodes(value: object, stage: Stage) -> tuple[NodeName, ...]:
    items = value if isinstance(value, list) and value else [value]
    for item in items:
        if item not in stage.nodes:
            raise SpecError((), f"no such node: {item!r}; there are: {', '.join(stage.nodes)}")
        if item in stage.fixed:
            raise SpecError((), f"{item} has its vote for good: say quorum: dynamic in the cluster")
    return tuple(NodeName(str(item)) for item in items)


def _nodes_data(nodes: tuple[NodeName, ...]) -> object:
    return str(nodes[0]) if len(nodes) == 1 else [str(node) for node in nodes]


def _broker(value: object, stage: Stage) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value not in stage.broker_ids:
        raise SpecError((), f"no such broker: {value!r}; there are: {list(stage.broker_ids)}")
    return value


def _brokers(value: object, stage: Stage) -> tuple[int, ...]:
    if not isinstance(value, list) or not value:
        raise SpecError((), f"expected a list of broker numbers, found {value!r}")
    return tuple(_broker(item, stage) for item in value)


def _example(word: str) -> str:
    examples = {"create_topic": "{name: u}", "move_leader": "{t-0: 2}", "reassign": "{t-0: [1, 2]}"}
    return examples[word]
