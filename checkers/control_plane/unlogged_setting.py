"""C23 unlogged-setting: A broker goes by a setting that the topic was never given.

A broker that showed one topic id before and after showed settings of that topic of which one, or
all together, it never had in the log of record between its creation and its removal. Values are
compared as parsed. How old they are, and whether any is missing, is not asked. Nothing is judged of
a topic that a snapshot begins with.

A broker shows the settings that it takes a topic to have been given, and it showed one topic id
before and after that (`history.request_schema.TOPIC_SETTINGS`). Its metadata are those of some
offset of the log, and go forward only. So at the offset behind the answer the topic with this id
lived, and the settings shown are among those that it had at one moment of its life.

A broker shows values as it has parsed them: numbers are compared as such, and of words neither
case, nor blanks, nor the order in a list counts. A setting that the log has and the broker does not
show proves nothing: its release may not know that one.

Not judged is what a broker showed of a living topic after the end of the log. The age of settings
is the question of `stale-read-after-write`.

Meaning: A broker keeps, deletes or acknowledges records by a setting that its topic was never
given, and other brokers do not know of it.
Case: a set of settings that a broker showed of a topic of the run
Source: KIP-631, ConfigRecord and RemoveTopicRecord; KAFKA-16206
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.checkers.entry import CatalogueEntry, Nearness
from fencepost.checkers.facts import Judged, Tables
from fencepost.checkers.metadata.records import MetadataRecord
from fencepost.checkers.metadata.view import MetadataView, counted, doubtful
from fencepost.checkers.proof import Proof
from fencepost.checkers.table_check import TableCheck

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    nearness=Nearness.NODE,
    needs=("metadata_log", "topic_settings"),
)
NAME: Final = ENTRY.name

_Row = Mapping[str, Any]
_Settings = Mapping[str, str | None]


@dataclass(slots=True, kw_only=True)
class _Life:
    """A topic from its creation to its removal, by the log of record."""

    topic: str
    states: list[_Settings]
    """The settings after each change, in order; the first entry has none yet."""
    given: dict[tuple[str, str | None], int] = field(default_factory=dict)
    """The metadata offset of the first record that gave it a setting, by name and value."""
    is_over: bool = False

    def give(self, record: MetadataRecord) -> None:
        """Take a ConfigRecord of it."""
        name = record.name or ""
        self.states.append({**self.states[-1], name: record.value})
        self.given.setdefault((name, record.value), record.metadata_offset)


def unlogged_settings(tables: Tables, seen: MetadataView) -> Judged:
    """Find settings shown without a record. Reads `metadata_log` and `topic_settings`."""
    if seen.log.doubt:
        yield from doubtful(NAME, seen.log.doubt)
        return
    lives, until_ns = _lives(seen.log.records), seen.known_until_ns
    found: dict[str, list[Proof | None]] = {}
    for row in tables["topic_settings"].to_pylist():
        life = lives.get(row["topic_id"])
        if life is not None and (life.is_over or row["return_ns"] < until_ns):
            found.setdefault(row["topic"], []).append(_judged(row, life, lives))
    for topic in sorted(found):
        yield topic, counted(NAME, topic, found[topic])


def _lives(records: Iterable[MetadataRecord]) -> Mapping[str, _Life]:
    """Return the topics whose creation the log has, by topic id."""
    lives: dict[str, _Life] = {}
    living: dict[str | None, _Life] = {}
    """By name."""
    first: list[MetadataRecord] = []
    """Settings of a topic that does not live, one right after the other."""
    for record in records:
        if record.type == "TopicRecord" and record.topic and not record.snapshot:
            life = _Life(topic=record.topic, states=[{}])
            lives[record.topic_id or ""] = living[record.topic] = life
            if first and _is_next(first[-1], record):
                # Up to 3.3 a creation begins with the settings.
                for one in first:
                    life.give(one)
        elif record.type == "ConfigRecord" and record.topic in living:
            living[record.topic].give(record)
        elif record.type == "ConfigRecord":
            first = [*(first if first and _is_next(first[-1], record) else ()), record]
        elif record.type == "RemoveTopicRecord" and record.topic_id in lives:
            gone = lives[record.topic_id]
            gone.is_over = True
            living.pop(gone.topic, None)
    return lives


def _is_next(one: MetadataRecord, other: MetadataRecord) -> bool:
    return one.topic == other.topic and one.metadata_offset + 1 == other.metadata_offset


def _judged(row: _Row, life: _Life, lives: Mapping[str, _Life]) -> Proof | None:
    shown = {one["name"]: one["value"] for one in row["settings"]}
    # Of the states of its life the one that explains the most; that of the creation has nothing.
    lacking = min((_lacking(shown, state) for state in life.states), key=len)
    if not lacking:
        return None
    name = lacking[0]
    return Proof.of(
        "{node} showed {name}={value} as a setting of topic {topic} ({topic_id}), asked at "
        "{called}, and the metadata log never gave that topic these settings{elsewhere}",
        times={"called": row["call_ns"]},
        node=row["node"],
        name=name,
        value="nothing" if shown[name] is None else shown[name],
        topic=row["topic"],
        topic_id=row["topic_id"],
        elsewhere=_elsewhere(row, name, shown[name], lives),
    )


def _lacking(shown: _Settings, state: _Settings) -> list[str]:
    """Return the settings shown that are not in a state, in order."""
    return [
        name
        for name, value in sorted(shown.items())
        if state.get(name) is None or _plain(value) != _plain(state[name])
    ]


def _plain(value: str | None) -> frozenset[float | str]:
    """Return a value as it is compared: the members of a list, numbers as such."""
    return frozenset(map(_number, "".join((value or "").split()).lower().split(",")))


def _number(word: str) -> float | str:
    try:
        return float(word)
    except ValueError:
        return word


def _elsewhere(row: _Row, name: str, value: str | None, lives: Mapping[str, _Life]) -> Proof:
    """Return which other topic of that name was given the setting; empty if none was."""
    for topic_id, life in lives.items():
        offset = life.given.get((name, value))
        if topic_id != row["topic_id"] and life.topic == row["topic"] and offset is not None:
            return Proof.of(
                "; it gave it at metadata offset {given_offset} to another topic of that name "
                "({other_topic_id})",
                metadata_offsets={"given_offset": offset},
                sources={"other_topic_id": "given_offset"},
                other_topic_id=topic_id,
            )
    return Proof.of("")


CHECKS: Final = (
    TableCheck(
        entry=ENTRY,
        kernel=unlogged_settings,
    ),
)
