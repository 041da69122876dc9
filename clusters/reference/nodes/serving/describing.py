"""DescribeConfigs: the settings of topics and brokers, as the metadata shown has them."""

from collections.abc import Iterable, Mapping
from typing import Final

from clusters.reference.nodes.errors import Error
from clusters.reference.nodes.image import MetadataImage
from clusters.reference.nodes.messages.client import DescribeConfigsRequest, DescribeConfigsResponse
from clusters.reference.nodes.situation import Situation

__all__ = ["TOPIC_DEFAULTS", "described"]

_TOPIC: Final = 2
_BROKER: Final = 4

TOPIC_DEFAULTS: Final[tuple[tuple[str, str], ...]] = (
    ("cleanup.policy", "delete"),
    ("retention.ms", "604800000"),
    ("retention.bytes", "-1"),
    ("max.message.bytes", "1048588"),
    ("unclean.leader.election.enable", "false"),
)
"""A topic's unstated settings, by Kafka's names; min.insync.replicas is configured."""

_Resource = tuple[int, str, int, tuple[tuple[str, str, bool], ...]]


def described(
    request: DescribeConfigsRequest, *, situation: Situation, image: MetadataImage
) -> DescribeConfigsResponse:
    """The settings of each resource that was asked for."""
    return DescribeConfigsResponse(
        request.correlation,
        tuple(
            _resource(kind, name, wanted, situation, image)
            for kind, name, wanted in request.resources
        ),
        image.offset,
    )


def _resource(
    kind: int,
    name: str,
    wanted: tuple[str, ...] | None,
    situation: Situation,
    image: MetadataImage,
) -> _Resource:
    if kind == _TOPIC:
        if name not in image.topics:
            return (kind, name, int(Error.UNKNOWN_TOPIC_OR_PARTITION), ())
        defaults = _topic_defaults(situation, image)
    elif kind == _BROKER:
        defaults = _broker_defaults(name, situation, image)
    else:
        return (kind, name, int(Error.INVALID_REQUEST), ())
    own = image.configs.get((kind, name), {})
    names: Iterable[str] = sorted({*defaults, *own}) if wanted is None else wanted
    settings = tuple(
        (one, own.get(one, defaults.get(one, "")), one not in own)
        for one in names
        if one in own or one in defaults
    )
    return (kind, name, int(Error.NONE), settings)


def _topic_defaults(situation: Situation, image: MetadataImage) -> Mapping[str, str]:
    configuration = situation.configuration
    defaults = dict(TOPIC_DEFAULTS)
    defaults["min.insync.replicas"] = str(configuration.min_insync_replicas)
    defaults.update(configuration.topic_defaults)
    for resource in ((_BROKER, ""), (_BROKER, str(situation.node_id))):
        defaults.update(
            (name, value)
            for name, value in image.configs.get(resource, {}).items()
            if name in defaults
        )
    return defaults


def _broker_defaults(name: str, situation: Situation, image: MetadataImage) -> Mapping[str, str]:
    defaults = {"min.insync.replicas": str(situation.configuration.min_insync_replicas)}
    if name:
        defaults.update(image.configs.get((_BROKER, ""), {}))
    return defaults
