"""The znodes of settings: written by the controller, with a notification that brokers watch."""

from collections.abc import Iterable
from typing import Final

from clusters.node_port.zookeeper import Create, SetData, Write
from clusters.reference.nodes.records import ConfigRecord, MetadataRecord, TopicRecord
from clusters.reference.zk.control.context import Context
from clusters.reference.zk.znodes import (
    CONFIG_CHANGE_PREFIX,
    config_path,
    encoded_config_change,
    encoded_settings,
)

__all__ = ["path_of", "settings_operations"]

_TOPIC: Final = 2
_KINDS: Final = {_TOPIC: "topics", 4: "brokers"}
"""The folders below /config by the type of the resource."""
_ALL: Final = "<default>"


def path_of(resource_type: int, name: str) -> str:
    """Return the path of the settings of a topic or of a broker ("": of all brokers)."""
    return config_path(_KINDS[resource_type], name or _ALL)


def settings_operations(context: Context, records: list[MetadataRecord]) -> Iterable[Write]:
    """Yield what writes the settings of the resources that records name or make."""
    found: dict[tuple[int, str], dict[str, str]] = {}
    made = {one.name for one in records if isinstance(one, TopicRecord)}
    for one in records:
        if isinstance(one, TopicRecord):
            found.setdefault((_TOPIC, one.name), {})
        elif isinstance(one, ConfigRecord):
            resource = (one.resource_type, one.resource_name)
            before = context.situation.image.configs.get(resource, {})
            after = found.setdefault(resource, dict(before))
            if one.value is None:
                after.pop(one.name, None)
            else:
                after[one.name] = one.value
    for (kind, name), settings in found.items():
        path = path_of(kind, name)
        data = encoded_settings(settings)
        is_there = path in context.settings_paths
        yield SetData(path, data) if is_there else Create(path, data)
        if kind != _TOPIC or name not in made:  # Who hears of a new topic reads its settings.
            change = encoded_config_change(_KINDS[kind], name or _ALL)
            yield Create(CONFIG_CHANGE_PREFIX, change, sequential=True)
