"""A wanted frame: where it goes, its bytes, and its content once that is asked."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from fencepost.clusters.protocol.columns import METADATA_TOPIC, METADATA_TOPIC_ID
from fencepost.nemesis.wire.apis import api_name
from fencepost.nemesis.wire.decoding.entities import Decoded, decoded, entity_of
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.rules import Direction, Link

_SAID = ("isr", "transactional_id", "fetch_offset", "broker_epoch")


@dataclass(slots=True)
class TopicNames:
    """The names of topics whose ids the wire states."""

    by_id: dict[str, str] = field(default_factory=lambda: {METADATA_TOPIC_ID: METADATA_TOPIC})


@dataclass(frozen=True, kw_only=True)
class Frame:
    """One frame, whole. Not slotted: what it says is kept once it was decoded."""

    connection: int
    link: Link
    direction: Direction
    header: Header
    """The header of the request, also for a response."""
    data: bytes
    time_ns: int
    """The time at which its last byte had arrived."""
    names: TopicNames

    @property
    def api(self) -> str:
        """Kafka's name of the frame's API."""
        return api_name(self.header.api_key)

    @cached_property
    def decoded(self) -> Decoded:
        """The columns and items that the frame states."""
        return decoded(self.header, self.direction, self.data)

    @property
    def payload(self) -> Any:
        """The frame as it is sent."""
        return self.data

    def answered(self, response: bytes) -> "Frame | None":
        """Return the frame of a response to this request; None: who asked cannot read it."""
        return replace(self, direction=Direction.RESPONSE, data=response)

    def entity(self) -> Any:
        """Return the message as kio's entity; raise Unreadable."""
        return entity_of(self.header, self.direction, self.data)

    @property
    def items(self) -> tuple[Mapping[str, Any], ...]:
        """The items, each with the name of its topic where that is known."""
        return tuple(self._named(item) for item in self.decoded.items)

    @property
    def rows(self) -> tuple[Mapping[str, Any], ...]:
        """The rows of the table: one for each item, one if there are no items."""
        return tuple({**self.decoded.columns, **item} for item in self.items or ({},))

    def __str__(self) -> str:
        arrow = "→" if self.direction is Direction.REQUEST else "←"
        link = f"{self.link.source} {arrow} {self.link.target}"
        said = _said(self.rows[0])
        version = "" if self.header.api_version < 0 else f" v{self.header.api_version}"
        return f"{self.api}{version} {link}" + (f", {said}" if said else "")

    def _named(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        name = self.names.by_id.get(item.get("topic_id", ""))
        return item if name is None or "topic" in item else {**item, "topic": name}


def _said(row: Mapping[str, Any]) -> str:
    """Return the first item in a few words: "t-0 isr [1, 2] NONE"."""
    words = []
    if "partition" in row:
        words.append(f"{row.get('topic') or row.get('topic_id')}-{row['partition']}")
    elif "topic" in row:
        words.append(row["topic"])
    elif "path" in row:
        words.append(row["path"])
    if row.get("zxid", -1) >= 0:
        words.append(f"zxid {row['zxid']:#x}")
    said = (f"{name.replace('_', ' ')} {row[name]}" for name in _SAID if row.get(name) is not None)
    words += [*said][:1]
    if row.get("error") is not None:
        words.append(row["error"])
    return " ".join(words)
