"""The settings that a broker shows of topics, each for one topic id.

An answer about settings names no topic id. So a broker is asked for them between two looks at its
metadata, and what it says of a topic is recorded only if both looks show the same id. All three go
over one connection, since a look that fails ends it: the broker is one process throughout, whose
metadata go forward only. So the answer is of the topic with this id.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fencepost.clusters.kafka.connection import NoAnswerError, NodeConnection
from fencepost.clusters.kafka.describing import Item, ask_settings
from fencepost.clusters.port import NodeName
from fencepost.history.clock import TellsTime
from fencepost.history.journal import RowJournal

_ASK_NS: Final = 1_000_000_000
"""Between two questions, unless there are other topics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    """What a broker said, until the next look at its metadata."""

    topic_ids: Mapping[str, str]
    """At the look before."""
    call_ns: int
    return_ns: int
    settings: Mapping[str, Mapping[str, str | None]]


class SettingsWatch:
    """Asks one broker, and records a row of `topic_settings` for whatever has changed."""

    def __init__(self, journal: RowJournal, clock: TellsTime, broker: NodeName) -> None:
        self._journal = journal
        self._clock = clock
        self._broker = broker
        self._shown: _Shown | None = None
        self._asked_for: Mapping[str, str] = {}
        self._due_ns = 0
        self._last: dict[str, tuple[str, Mapping[str, str | None]]] = {}

    def after(
        self, looked: Sequence[Item] | None, connection: NodeConnection, *, timeout_s: float
    ) -> None:
        """Go on after a look at the metadata, over this connection; None: it failed."""
        topic_ids = _topic_ids(looked or ())
        if self._shown is not None:
            self._record(self._shown, topic_ids)
        self._shown = None
        call_ns = self._clock.now_ns()
        if topic_ids and (topic_ids != self._asked_for or call_ns >= self._due_ns):
            self._asked_for, self._due_ns = topic_ids, call_ns + _ASK_NS
            try:
                settings = ask_settings(connection, sorted(topic_ids), timeout_s=timeout_s)
            except NoAnswerError:
                return  # it is down: others see to that
            self._shown = _Shown(
                topic_ids=topic_ids,
                call_ns=call_ns,
                return_ns=self._clock.now_ns(),
                settings=settings,
            )

    def _record(self, shown: _Shown, topic_ids: Mapping[str, str]) -> None:
        for topic, settings in shown.settings.items():
            topic_id = topic_ids.get(topic)
            told = topic_id, settings
            if topic_id and topic_id == shown.topic_ids[topic] and told != self._last.get(topic):
                self._last[topic] = topic_id, settings
                self._journal.add(self._row(shown, topic, topic_id, settings))

    def _row(
        self, shown: _Shown, topic: str, topic_id: str, settings: Mapping[str, str | None]
    ) -> dict[str, Any]:
        return {
            "node": self._broker,
            "call_ns": shown.call_ns,
            "return_ns": shown.return_ns,
            "topic": topic,
            "topic_id": topic_id,
            "settings": [{"name": name, "value": settings[name]} for name in sorted(settings)],
        }


def _topic_ids(items: Iterable[Item]) -> Mapping[str, str]:
    return {item["topic"]: item["topic_id"] for item in items if item.get("topic_id")}
