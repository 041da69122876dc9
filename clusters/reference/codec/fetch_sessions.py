"""Fetch sessions (KIP-227): a fetch and its answer state what changed since the ones before.

Sessions exist on the wire alone. A node is asked for all partitions of the session, with what was
stated of each one last; of its answer a session leaves out the partitions without news. So the
protocol's rules see a whole fetch each time, with the sender's present broker epoch.

Source: Kafka's `FetchSession`, `FetchManager`; its client's `FetchSessionHandler`.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from random import Random
from typing import Any, Final

from fencepost.clusters.protocol.entities import Values
from fencepost.clusters.reference.codec.api import grouped
from fencepost.clusters.reference.nodes.errors import Error

_SESSIONS_FROM: Final = 7
_NO_SESSION: Final = 0
_FIRST: Final = 0
"""The session epoch of a whole fetch that may begin a session."""
_LAST: Final = -1
"""The session epoch of a whole fetch without one."""
_MAX: Final = (1 << 31) - 1
_IDLE_NS: Final = 120_000_000_000
"""A session that was not used for so long gives way to another one."""

_Partition = tuple[Any, int]
"""(id or name of the topic, index)."""


class _Session:
    __slots__ = (
        "epoch",
        "is_follower",
        "number",
        "partitions",
        "told",
        "topics",
        "used_ns",
        "version",
    )

    def __init__(self, number: int, entity: Any, *, used_ns: int) -> None:
        self.number = number
        self.version = entity.__version__
        self.is_follower = _is_follower(entity)
        self.used_ns = used_ns
        self.epoch = 1
        """The epoch of the next fetch."""
        self.topics: dict[Any, Any] = {}
        """An entity of each topic, of whatever partitions."""
        self.partitions: dict[_Partition, Any] = {}
        self.told: dict[_Partition, tuple[int, int]] = {}
        """(high watermark, log start) as last answered; an error has none, so that what follows it
        is news."""
        self.update(entity)

    def update(self, entity: Any) -> None:
        """Take what a fetch states, and forget what it names as forgotten."""
        for topic in entity.topics:
            self.topics[_of(topic)] = topic
            self.partitions |= {(_of(topic), one.partition): one for one in topic.partitions}
        for topic in entity.forgotten_topics_data:
            for index in topic.partitions:
                self.partitions.pop((_of(topic), index), None)
                self.told.pop((_of(topic), index), None)
        named = {topic for topic, _ in self.partitions}
        self.topics = {topic: one for topic, one in self.topics.items() if topic in named}

    def whole(self, entity: Any) -> Any:
        """Return the fetch with all partitions of the session."""
        by_topic = grouped((key[0], one) for key, one in self.partitions.items())
        topics = (
            replace(self.topics[one], partitions=tuple(all_)) for one, all_ in by_topic.items()
        )
        return replace(entity, topics=tuple(topics), forgotten_topics_data=())

    def has_news(self, key: _Partition, one: Values) -> bool:
        """Return whether an answer says anything new of a partition, which is told from then on."""
        marks = (one["high_watermark"], one["log_start_offset"])
        is_known = self.told.get(key) == marks
        if key in self.partitions:
            self.told[key] = marks
        diverges = one["diverging_epoch"]["end_offset"] >= 0
        return not is_known or diverges or bool(one["error_code"] or one["records"])


class OpenFetch:
    """A fetch with all its partitions, and what becomes of its answer."""

    __slots__ = ("_is_whole", "_session", "entity")

    def __init__(self, entity: Any, session: _Session | None, *, is_whole: bool) -> None:
        self.entity = entity
        self._session = session
        self._is_whole = is_whole

    def answer(self, values: Values) -> Values:
        """Return the answer without what a session knows, and with its number."""
        session = self._session
        if session is None:
            return values
        topics = []
        for topic in values["responses"]:
            of = topic.get("topic_id", topic.get("topic"))
            told = [
                one
                for one in topic["partitions"]
                if session.has_news((of, one["partition_index"]), one) or self._is_whole
            ]
            topics += [{**topic, "partitions": told}] if told else []
        return {**values, "session_id": session.number, "responses": topics}


class FetchSessions:
    """A broker's sessions, at most `slots` of them; without a slot a fetch begins none.

    `seed`: the numbers of the sessions; no other process of the broker may have the same.
    """

    def __init__(self, *, slots: int, seed: int, now_ns: Callable[[], int]) -> None:
        self._slots = slots
        self._numbers = Random(seed)  # noqa: S311 -- not to be confused with others, not secret
        self._now_ns = now_ns
        self._sessions: dict[int, _Session] = {}
        """By their numbers, the one that was not used for the longest time first."""

    def open(self, entity: Any) -> OpenFetch | Error:
        """Return a request's whole fetch, or why it is refused."""
        if entity.__version__ < _SESSIONS_FROM:
            return OpenFetch(entity, None, is_whole=True)
        number, epoch = entity.session_id, entity.session_epoch
        session = self._sessions.pop(number, None)
        if epoch in (_FIRST, _LAST):
            begun = self._begin(entity) if epoch == _FIRST and entity.topics else None
            return OpenFetch(entity, begun, is_whole=True)
        if session is None or session.version != entity.__version__:
            return Error.FETCH_SESSION_ID_NOT_FOUND
        self._sessions[number] = session
        if session.epoch != epoch:
            return Error.INVALID_FETCH_SESSION_EPOCH
        session.epoch, session.used_ns = _next(epoch), self._now_ns()
        session.update(entity)
        if not session.partitions:
            del self._sessions[number]
            return OpenFetch(session.whole(entity), None, is_whole=True)
        return OpenFetch(session.whole(entity), session, is_whole=False)

    def _begin(self, entity: Any) -> _Session | None:
        now = self._now_ns()
        if len(self._sessions) >= self._slots and not self._make_room(now, entity):
            return None
        number = self._numbers.randint(1, _MAX)
        while number in self._sessions:
            number = self._numbers.randint(1, _MAX)
        session = self._sessions[number] = _Session(number, entity, used_ns=now)
        return session

    def _make_room(self, now: int, entity: Any) -> bool:
        """End a session that is idle, or a consumer's for a follower's."""
        for number, one in self._sessions.items():
            if now - one.used_ns >= _IDLE_NS or (_is_follower(entity) and not one.is_follower):
                del self._sessions[number]
                return True
        return False


class FollowerSession:
    """The session of a follower's connection to a leader."""

    def __init__(self) -> None:
        self._number = _NO_SESSION
        self._epoch = _FIRST
        self._stated: dict[_Partition, Values] = {}

    def reduced(self, values: Values) -> Values:
        """Return a fetch's values without what the session knows."""
        stated = {
            (topic["topic_id"], one["partition"]): one
            for topic in values["topics"]
            for one in topic["partitions"]
        }
        before, self._stated = self._stated, stated
        session = {"session_id": self._number, "session_epoch": self._epoch}
        if self._epoch == _FIRST:
            return {**values, **session}
        changed = ((key[0], one) for key, one in stated.items() if before.get(key) != one)
        forgotten = (key for key in before if key not in stated)
        return {
            **values,
            **session,
            "topics": _topics(changed),
            "forgotten_topics_data": _topics(forgotten),
        }

    def heard(self, entity: Any) -> None:
        """Take the leader's answer; after an error or without a session a whole fetch is next."""
        error = entity.error_code.value
        if error != Error.INVALID_FETCH_SESSION_EPOCH:
            self._number = _NO_SESSION if error else entity.session_id
        is_open = not error and self._number != _NO_SESSION
        self._epoch = _next(self._epoch) if is_open else _FIRST


def _topics(partitions: Iterable[tuple[Any, Any]]) -> list[Values]:
    by_topic = grouped(partitions)
    return [{"topic_id": one, "partitions": some} for one, some in by_topic.items()]


def _of(topic: Any) -> Any:
    return topic.topic_id if hasattr(topic, "topic_id") else topic.topic


def _is_follower(entity: Any) -> bool:
    follower: bool = getattr(entity, "replica_state", entity).replica_id >= 0
    return follower


def _next(epoch: int) -> int:
    return 1 if epoch == _MAX else epoch + 1
