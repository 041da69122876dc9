"""Events, as Jepsen records them: an operation is invoked, and later completed.

    {:type :invoke, :process 0, :f :cas, :value [1 2], :time 123, :index 7}
    {:type :fail,   :process 0, :f :cas, :value [1 2], :time 130, :index 8}

The order of a file is that in which things happened. A time, in ns, says when; one that is before
that of an earlier line (a generator stamps what it plans) counts as that one. Without any `:time`
the number of the line is the time. An `:index`, if there are any, grows.

Source: jepsen.history.Op, https://github.com/jepsen-io/history.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from fencepost.history.open.edn import EdnSet, Keyword, Symbol, Tagged, edn_text
from fencepost.history.open.refusal import BadLineError, shown

TYPES: Final = ("invoke", "ok", "fail", "info")

INT64_MAX: Final = (1 << 63) - 1
_ERROR_LENGTH_MAX: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLine:
    """A line of a file of events, of a client."""

    line: int
    type: str
    process: int
    f: str
    value: Any
    key: Any
    """The field `key`; None if it is absent, or `value` is a tuple of key and value."""
    time_ns: int
    stated_ns: int | None
    """The time that the line states."""
    error: str | None
    fields: Mapping[str, Any]
    """All fields of the line."""


class EventReader:
    """A reader of forms or JSON objects as events, line by line."""

    def __init__(self) -> None:
        self.nemesis_count = 0
        """The number of events of a nemesis, which no model is about."""
        self._index: int | None = None
        self._line_count = 0
        self._timed: bool | None = None
        self._time_ns = 0

    def event(self, line: int, fields: Mapping[str, Any]) -> EventLine | None:
        """Return the event of these fields, None of a nemesis'.

        Raise RefusedError for other fields.
        """
        self._line_count += 1
        self._note_index(fields.get("index"))
        stated_ns = self._stated_ns(fields)
        if isinstance(fields.get("process"), (Keyword, str, Symbol)):
            self.nemesis_count += 1
            return None
        kind = word(fields, "type")
        if kind not in TYPES:
            raise BadLineError(f"expected type {', '.join(TYPES)}; found {shown(kind)}")
        return EventLine(
            line=line,
            type=kind,
            process=integer(fields, "process", least=-INT64_MAX),
            f=word(fields, "f"),
            value=fields.get("value"),
            key=fields.get("key"),
            time_ns=self._time_ns,
            stated_ns=stated_ns,
            error=_error(fields.get("error")),
            fields=fields,
        )

    def _note_index(self, index: Any) -> None:
        if index is None:
            return
        if type(index) is not int or index < 0:
            raise BadLineError(f"expected an index from 0 on; found {shown(index)}")
        if self._index is not None and index <= self._index:
            raise BadLineError(f"expected an index above {self._index}; found {index}")
        self._index = index

    def _stated_ns(self, fields: Mapping[str, Any]) -> int | None:
        timed = fields.get("time") is not None
        if self._timed is None:
            self._timed = timed
        if timed is not self._timed:
            raise BadLineError(
                "expected a time on every line or on none; found "
                + ("one here, and none before" if timed else "none here, and some before")
            )
        stated_ns = integer(fields, "time") if timed else None
        now_ns = self._line_count if stated_ns is None else stated_ns
        self._time_ns = max(self._time_ns, now_ns)
        return stated_ns


def integer(fields: Mapping[str, Any], name: str, *, least: int = 0) -> int:
    """Return an integer field of 64 bits.

    Raise RefusedError for any other value, and below `least`.
    """
    found = fields.get(name)
    from_least = f" from {least} on" if least >= 0 else ""
    if type(found) is not int or not least <= found <= INT64_MAX:
        raise BadLineError(f"expected {name}: an integer{from_least}; found {shown(found)}")
    return found


def word(fields: Mapping[str, Any], name: str) -> str:
    """Return a field that is a keyword or a string."""
    found = fields.get(name)
    text = found.name if isinstance(found, Keyword) else found
    if not isinstance(text, str) or not text:
        raise BadLineError(f"expected {name}: a word; found {shown(found)}")
    return text


def refuse_unknown(fields: Mapping[str, Any], known: frozenset[str]) -> None:
    """Raise RefusedError if there is a field of another name."""
    unknown = sorted(fields.keys() - known)
    if unknown:
        raise BadLineError(
            f"expected the fields {', '.join(sorted(known))}; found {', '.join(unknown)}"
        )


def _error(found: Any) -> str | None:
    """Return a client's error as one text: a word as it is, all else in EDN."""
    match found:
        case None:
            return None
        case Keyword():
            return found.name
        case str():
            return found
        case EdnSet() | Tagged() | Symbol() | tuple() | list() | dict() | int() | float():
            return edn_text(found)[:_ERROR_LENGTH_MAX]
    raise BadLineError(f"expected error: a word; found {shown(found)}")
