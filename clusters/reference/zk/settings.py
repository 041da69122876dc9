"""The settings of topics and brokers, read from ZooKeeper as Kafka's brokers read them.

All are read when a session begins, those of a topic when this broker first hears of it, and any of
them when a notification names it. A leader acknowledges nothing before its topic's are read, since
min.insync.replicas is one of them (`ZkSituation.min_insync_replicas`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from fencepost.clusters.node_port.effects import Effects
from fencepost.clusters.node_port.zookeeper import GetChildren, GetData, WatchEvent, ZkError
from fencepost.clusters.reference.nodes.records import ConfigRecord
from fencepost.clusters.reference.zk.coroutines import Started
from fencepost.clusters.reference.zk.situation import ZkSituation
from fencepost.clusters.reference.zk.znodes import (
    CONFIG_CHANGES,
    config_path,
    decoded_config_change,
    decoded_settings,
)

_RESOURCES: Final = {"topics": 2, "brokers": 4}
"""Kafka's resource types."""
_DEFAULT: Final = "<default>"
"""The name of the settings that all brokers share."""
_NO_NODE: Final = int(ZkError.NO_NODE)


class Settings:
    """A broker's copy of the settings."""

    __slots__ = ("_changed", "_last_read", "_reading", "_situation")

    def __init__(self, situation: ZkSituation, changed: Callable[[], None]) -> None:
        """Create it. `changed` is called when settings are new."""
        self._situation = situation
        self._changed = changed
        self._last_read = ""
        """The name of the last notification that was read, or was there before all was read."""
        self._reading: dict[str, int] = {}
        """The ids of topics whose settings are being read."""
        situation.zookeeper.on_watch(CONFIG_CHANGES, self._told)

    def begin(self, now: int, effects: Effects) -> None:
        """Read everything: a session has begun, which reads all settings after the notifications.

        So those that are there already need not be read.
        """
        self._run(now, self._news(), effects)
        for kind in _RESOURCES:
            self._run(now, self._read_all(kind), effects)
        for topic in self._reading:
            self._run(now, self._read("topics", topic), effects)

    def topic(self, now: int, topic: str, topic_id: int, effects: Effects) -> None:
        """Read the settings of a topic, unless those of this very topic are read."""
        if topic_id in (self._situation.configured.get(topic), self._reading.get(topic)):
            return
        self._situation.configured.pop(topic, None)
        self._reading[topic] = topic_id
        self._run(now, self._read("topics", topic), effects)

    def _run(self, now: int, coroutine: Started, effects: Effects) -> None:
        self._situation.zookeeper.coroutines.run(now, coroutine, effects)

    def _told(self, now: int, _event: WatchEvent, effects: Effects) -> None:
        self._run(now, self._follow_news(), effects)

    async def _news(self) -> Sequence[str]:
        """Return the notifications that were not there before, and watch for more."""
        zookeeper = self._situation.zookeeper
        (found,) = await zookeeper.read([GetChildren(CONFIG_CHANGES, watch=True)])
        self._situation.seen_changes.add(zookeeper.coroutines.now, found.children)
        news = [name for name in found.children if name > self._last_read]
        self._last_read = max((self._last_read, *found.children))
        return news

    async def _follow_news(self) -> None:
        for name in await self._news():
            self._situation.zookeeper.coroutines.spawn(self._follow(name))

    async def _follow(self, change: str) -> None:
        """Read the settings that a notification names."""
        (found,) = await self._situation.zookeeper.read([GetData(f"{CONFIG_CHANGES}/{change}")])
        if not found.error:
            kind, name = decoded_config_change(found.data)
            if kind in _RESOURCES:
                await self._read(kind, name)

    async def _read_all(self, kind: str) -> None:
        (found,) = await self._situation.zookeeper.read([GetChildren(f"/config/{kind}")])
        for name in found.children:
            self._situation.zookeeper.coroutines.spawn(self._read(kind, name))

    async def _read(self, kind: str, name: str) -> None:
        topic_id = self._reading.get(name)
        (found,) = await self._situation.zookeeper.read([GetData(config_path(kind, name))])
        if found.error not in (0, _NO_NODE):
            return
        resource = "" if name == _DEFAULT else name
        self._apply(_RESOURCES[kind], resource, decoded_settings(found.data) if found.data else {})
        if kind == "topics" and topic_id is not None and self._reading.get(name) == topic_id:
            self._situation.configured[name] = self._reading.pop(name)
        self._changed()

    def _apply(self, resource: int, name: str, settings: Mapping[str, str]) -> None:
        image = self._situation.image
        known = dict(image.configs.get((resource, name), {}))
        for one in sorted({*known, *settings}):
            if known.get(one) != settings.get(one):
                record = ConfigRecord(resource, name, one, settings.get(one))
                image.apply(image.offset, self._situation.controller_epoch, record)
