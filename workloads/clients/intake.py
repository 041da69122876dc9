"""The intake of a transactional producer: records of the run's keys, read at read_committed.

Its group's committed offsets say where it reads on. They are sent with the transaction that the
records were taken for, and count if it commits. So after a transaction that did not commit, or may
not have, the group is asked again; so it is by the next instance with the same transactional id.
Every answer and every sending is on record: records and offsets must have the same outcome.

Polls are recorded like any consumer's, under a process number of their own. Each time that the
group was asked a new session begins: the same records may be read again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Thread
from typing import Any, Final

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from fencepost.history.clock import Clock
from fencepost.history.errors import name_of
from fencepost.history.operation import FETCH_OFFSETS, SEND_OFFSETS, Outcome
from fencepost.workloads.clients.columns import KafkaErrorLike, Polled, polled_of
from fencepost.workloads.clients.consumer import poll_outcome
from fencepost.workloads.clients.places import key_indices, places_of
from fencepost.workloads.clients.recording import RecordsEvents, RecordsPolls
from fencepost.workloads.clients.sessions import ConsumerSessions
from fencepost.workloads.clients.transactional_client import Group
from fencepost.workloads.clients.transactional_config import IntakeConfig

_NOTHING_COMMITTED: Final = -1
_FETCH_S: Final = 3.0
_POLL_S: Final = 0.1
_CLOSE_S_MAX: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """The records taken for one transaction: where they begin and where they end, by key."""

    offsets_before: Mapping[int, int]
    offsets: Mapping[int, int]
    """The offset after the last record."""


class Intake:
    """The intake of one instance of a transactional producer. `process`: of its producer."""

    def __init__(
        self,
        config: IntakeConfig,
        *,
        keys: tuple[str, ...],
        process: int,
        recorder: RecordsPolls,
        journal: RecordsEvents,
        clock: Clock,
        connect: Callable[[dict[str, Any]], Any] = Consumer,
    ) -> None:
        self._config = config
        self._keys = keys
        self._process = process
        self._recorder = recorder
        self._journal = journal
        self._clock = clock
        self._places = places_of(keys)
        self._key_of = key_indices(keys)
        self._sessions = ConsumerSessions(len(keys))
        self._next: dict[int, int] = {}
        self._is_placed = False
        self._sending: int | None = None
        self._consumer = connect({**config.settings, "group.id": config.group})

    @property
    def group(self) -> Group:
        """The group whose offsets are sent."""
        return Group(name=self._config.group, metadata=self._consumer.consumer_group_metadata())

    def take(self) -> Taken | None:
        """Poll once; None if nothing is there, or the group could not be asked."""
        if not self._is_placed and not self._place():
            return None
        polled = self._poll()
        before: dict[int, int] = {}
        for key, offset in zip(polled.keys.tolist(), polled.offsets.tolist(), strict=True):
            before.setdefault(key, self._next[key])
            self._next[key] = offset + 1
        if not before:
            return None
        return Taken(offsets_before=before, offsets={key: self._next[key] for key in before})

    def sending(self, taken: Taken) -> dict[tuple[str, int], int]:
        """Record that these offsets are sent with the open transaction; return them by place."""
        keys = list(taken.offsets)
        self._sending = self._journal.begin(
            {
                "process": self._process,
                "f": SEND_OFFSETS,
                "group": self._config.group,
                "call_ns": self._clock.now_ns(),
                "outcome": str(Outcome.INFO),
                "keys": [self._keys[key] for key in keys],
                "offsets": [taken.offsets[key] for key in keys],
                "offsets_before": [taken.offsets_before[key] for key in keys],
            }
        )
        return {self._places[key]: taken.offsets[key] for key in keys}

    def ended(self, outcome: Outcome, *, error: int = 0) -> None:
        """Take the outcome of the transaction and of its offsets. Unless ok, start over."""
        self._is_placed &= outcome is Outcome.OK
        if self._sending is None:
            return
        named = {"error": name_of(error)} if error else {}
        end = {"outcome": str(outcome), "return_ns": self._clock.now_ns()}
        self._journal.end(self._sending, end | named)
        self._sending = None

    def close(self) -> None:
        """Disconnect, if that is possible at once; the record is on disk already."""
        closing = Thread(target=self._consumer.close, daemon=True)
        closing.start()
        closing.join(_CLOSE_S_MAX)

    def _place(self) -> bool:
        """Ask for the group's offsets, and read on from there; return whether that succeeded."""
        number = self._journal.begin(
            {
                "process": self._process,
                "f": FETCH_OFFSETS,
                "group": self._config.group,
                "call_ns": self._clock.now_ns(),
                "keys": list(self._keys),
                "offsets": [],
            }
        )
        answer = self._committed()
        end: dict[str, object] = {"return_ns": self._clock.now_ns()}
        if isinstance(answer, int):
            # A question changes nothing.
            end |= {"outcome": str(Outcome.FAIL), "error": name_of(answer)}
        else:
            end |= {"outcome": str(Outcome.OK), "offsets": answer}
        self._journal.end(number, end)
        if not isinstance(answer, int):
            self._assign(answer)
        return self._is_placed

    def _committed(self) -> list[int] | int:
        """Return the committed offset of each key, -1 for none; or the code of the error."""
        try:
            places = self._consumer.committed(
                [TopicPartition(*place) for place in self._places], timeout=_FETCH_S
            )
        except KafkaException as exception:
            return int(exception.args[0].code())
        if errors := [place.error for place in places if place.error is not None]:
            return int(errors[0].code())
        by_place = {(place.topic, place.partition): place.offset for place in places}
        return [max(_NOTHING_COMMITTED, by_place[place]) for place in self._places]

    def _assign(self, offsets: list[int]) -> None:
        self._consumer.assign(
            [
                TopicPartition(*place, OFFSET_BEGINNING if offset < 0 else offset)
                for place, offset in zip(self._places, offsets, strict=True)
            ]
        )
        self._next = {key: max(0, offset) for key, offset in enumerate(offsets)}
        self._sessions.gain(range(len(self._places)))
        self._is_placed = True

    def _poll(self) -> Polled:
        """Poll once and record it. After an error the group is asked again."""
        self._sessions.begin_poll()
        sequence = self._recorder.invoke(time_ns=self._clock.now_ns())
        # From here to `complete` nothing of ours may raise: what was polled would be lost.
        errors: tuple[KafkaErrorLike, ...] = ()
        try:
            messages = self._consumer.consume(self._config.records_max, _POLL_S)
        except KafkaException as exception:
            messages, errors = [], (exception.args[0],)
        polled = polled_of(messages, key_of=self._key_of)
        errors = (*errors, *polled.errors)
        self._recorder.complete(
            sequence,
            time_ns=self._clock.now_ns(),
            keys=polled.keys,
            offsets=polled.offsets,
            values=polled.values,
            sessions=self._sessions.end_poll(polled.keys, polled.offsets),
            outcome=poll_outcome(errors, returned=len(polled.keys) > 0),
            error=errors[0].code() if errors else 0,
        )
        self._is_placed &= not errors
        return polled
