"""The settings of topics and brokers, read from ZooKeeper as Kafka's brokers read them.

All are read when a session begins, those of a topic when this broker first hears of it, and any of
them when a notification names it. A leader acknowledges nothing before its topic's are read, since
min.insync.replicas is one of them (`ZkSituation.min_insync_replicas`).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from clusters.node_port.effects import Effects
from clusters.node_port.zookeeper import GetChildren, GetData, WatchEvent, ZkError
from clusters.reference.nodes.records import ConfigRecord
from clusters.reference.zk.asking import OnAnswer, ZkAnswer
from clusters.reference.zk.situation import ZkSituation
from clusters.reference.zk.znodes import (
    CONFIG_CHANGES,
    config_path,
    decoded_config_change,
    decoded_settings,
)

__all__ = ["Settings"]

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
        situation.asking.on_watch(CONFIG_CHANGES, self._told)

    def begin(self, effects: Effects) -> None:
        """Read everything: a session has begun."""
        self._list_changes(self._changes_there, effects)
        for kind in _RESOURCES:
            then = partial(self._listed, kind)
            self._situation.asking.ask((GetChildren(f"/config/{kind}"),), then, effects)
        for topic in self._reading:
            self._read("topics", topic, effects)

    def topic(self, topic: str, topic_id: int, effects: Effects) -> None:
        """Read the settings of a topic, unless those of this very topic are read."""
        if topic_id in (self._situation.configured.get(topic), self._reading.get(topic)):
            return
        self._situation.configured.pop(topic, None)
        self._reading[topic] = topic_id
        self._read("topics", topic, effects)

    def _told(self, _now: int, _event: WatchEvent, effects: Effects) -> None:
        self._list_changes(self._changes_listed, effects)

    def _list_changes(self, then: OnAnswer, effects: Effects) -> None:
        self._situation.asking.ask((GetChildren(CONFIG_CHANGES, watch=True),), then, effects)

    def _changes_there(self, now: int, answer: ZkAnswer, _effects: Effects) -> None:
        """Note the notifications of before: a session that begins reads all settings after them."""
        self._news(now, answer)

    def _changes_listed(self, now: int, answer: ZkAnswer, effects: Effects) -> None:
        for name in self._news(now, answer):
            read = GetData(f"{CONFIG_CHANGES}/{name}")
            self._situation.asking.ask((read,), self._change_read, effects)

    def _news(self, now: int, answer: ZkAnswer) -> Sequence[str]:
        """Return the notifications that were not there before."""
        if answer.response.error:
            return ()
        names = answer.response.outcomes[0].children
        self._situation.seen_changes.add(now, names)
        news = [name for name in names if name > self._last_read]
        self._last_read = max((self._last_read, *names))
        return news

    def _change_read(self, _now: int, answer: ZkAnswer, effects: Effects) -> None:
        if not answer.response.error:
            kind, name = decoded_config_change(answer.response.outcomes[0].data)
            if kind in _RESOURCES:
                self._read(kind, name, effects)

    def _listed(self, kind: str, _now: int, answer: ZkAnswer, effects: Effects) -> None:
        if not answer.response.error:
            for name in answer.response.outcomes[0].children:
                self._read(kind, name, effects)

    def _read(self, kind: str, name: str, effects: Effects) -> None:
        then = partial(self._found, kind, name, self._reading.get(name))
        self._situation.asking.ask((GetData(config_path(kind, name)),), then, effects)

    def _found(
        self,
        kind: str,
        name: str,
        topic_id: int | None,
        _now: int,
        answer: ZkAnswer,
        _effects: Effects,
    ) -> None:
        response = answer.response
        if response.error not in (0, _NO_NODE):
            return
        data = response.outcomes[0].data if not response.error else b""
        resource = "" if name == _DEFAULT else name
        self._apply(_RESOURCES[kind], resource, decoded_settings(data) if data else {})
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
