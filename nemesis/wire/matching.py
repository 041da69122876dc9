"""The match of a rule against frames: first against a header, then against a frame's content.

Headers are asked for every frame of a wanted API that goes by, so that decoding, which costs ten
times as much, is left to the frames that a rule may really concern.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from fencepost.clusters.kafka_port import Role
from fencepost.clusters.protocol.columns import METADATA_TOPIC
from fencepost.history.cluster_schema import WIRE
from fencepost.history.failure import UsageError
from fencepost.nemesis.wire.answers import why_no_answer
from fencepost.nemesis.wire.apis import API_KEYS, API_VERSIONS, FETCH
from fencepost.nemesis.wire.carried import KAFKA_ALONE
from fencepost.nemesis.wire.clause_fields import CLAUSE_FIELDS
from fencepost.nemesis.wire.decoding.entities import is_read
from fencepost.nemesis.wire.decoding.quorum import RECORD_TYPES, record_types
from fencepost.nemesis.wire.error_codes import error_code
from fencepost.nemesis.wire.frame import Frame
from fencepost.nemesis.wire.frames import Header
from fencepost.nemesis.wire.rules import (
    Answer,
    Clause,
    Direction,
    Duplicate,
    Link,
    LowerVersion,
    Match,
    Operator,
    Reorder,
    Rule,
)
from fencepost.nemesis.wire.zookeeper.messages import KEY_END, KEY_MIN, ONE_WAY

_OWN_KINDS: Final[Mapping[str, type]] = {"key": str, "metadata": bool, "record_type": str}
"""The types of the fields that are no columns."""
_KIND_WORDS: Final = {bool: "true or false", int: "a number", str: "a word"}


class Matcher:
    """A match, prepared for being asked often."""

    def __init__(self, rule: Rule) -> None:
        match = _effective(rule)
        self._direction = match.direction
        self._api_key = None if match.api is None else API_KEYS[match.api]
        self._version_min = -1 if match.version_min is None else match.version_min
        self._version_max = 1 << 15 if match.version_max is None else match.version_max
        self._sources = frozenset(match.sources)
        self._targets = frozenset(match.targets)
        self._client_id = match.client_id
        self._where = match.where
        self._metadata: bool | None = None
        """True: only Fetches of the metadata log fit; False: only others; None: any."""
        if self._api_key == FETCH:
            # The link says it, so that no frame is decoded for it.
            self._where = tuple(one for one in match.where if one.field != "metadata")
            said = [_is_metadata(one) for one in match.where if one.field == "metadata"]
            self._metadata = said[0] if said else None
        self._key_max = KEY_MIN if isinstance(rule.action, KAFKA_ALONE) else KEY_END

    def may_fit(self, direction: Direction, api_key: int) -> bool:
        """Return whether a frame of this API may fit."""
        named = self._api_key in (None, api_key)
        return self._direction is direction and named and api_key < self._key_max

    def fits_header(self, link: Link, direction: Direction, header: Header) -> bool:
        """Return whether a frame with this header may fit: only the clauses are left to check."""
        return (
            self.may_fit(direction, header.api_key)
            and self._version_min <= header.api_version <= self._version_max
            and (self._client_id is None or self._client_id == header.client_id)
            and (not self._sources or link.source in self._sources)
            and (not self._targets or link.target in self._targets)
            and self._metadata in (None, link.asks(Role.CONTROLLER))
        )

    def fits(self, frame: Frame) -> bool:
        """Return whether the frame fits: its header fits, and one of its items fits all clauses."""
        if not self.fits_header(frame.link, frame.direction, frame.header):
            return False
        if not self._where:
            return True
        return any(all(_meets(clause, row, frame) for clause in self._where) for row in frame.rows)


def refuse_impossible(rule: Rule) -> None:
    """Raise UsageError if the rule can concern no frame, or asks for what cannot be done."""
    match = _effective(rule)
    named = [match.api, rule.action.api if isinstance(rule.action, LowerVersion) else None]
    for api in named:
        if api is not None and api not in API_KEYS:
            raise UsageError(f"rule {rule.name}: Kafka has no API {api}")
    if match.api is not None and ONE_WAY.get(match.api, match.direction) is not match.direction:
        raise UsageError(f"rule {rule.name}: {match.api} is never a {match.direction}")
    for clause in match.where:
        _refuse_clause(rule.name, clause)
        if match.api is not None and clause.field != "size_bytes" and not is_read(match.api):
            raise UsageError(
                f"rule {rule.name}: the proxy reads only the header of {match.api}, "
                f"which has no {clause.field}"
            )
    one_way = isinstance(rule.action, Answer | Duplicate | Reorder)
    if one_way and match.direction is not Direction.REQUEST:
        raise UsageError(f"rule {rule.name}: {type(rule.action).__name__} applies to requests only")
    if isinstance(rule.action, Answer):
        _refuse_answer(rule.name, rule.action.error, match.api)


def _refuse_clause(rule: str, clause: Clause) -> None:
    if clause.field not in CLAUSE_FIELDS:
        known = ", ".join(sorted(CLAUSE_FIELDS))
        raise UsageError(f"rule {rule}: no field {clause.field}; there are {known}")
    if clause.field == "record_type" and clause.value not in RECORD_TYPES.values():
        known = ", ".join(RECORD_TYPES.values())
        raise UsageError(f"rule {rule}: no record type {clause.value}; there are {known}")

    _refuse_kind(rule, clause)


def _refuse_kind(rule: str, clause: Clause) -> None:
    """Refuse a clause of the wrong kind: a number is never a word, so it would meet nothing."""
    kind = _OWN_KINDS.get(clause.field) or _kind_of(WIRE.field(clause.field).type)
    listed = clause.field in WIRE.names and pa.types.is_list(WIRE.field(clause.field).type)
    stated = clause.value if isinstance(clause.value, tuple) else (clause.value,)
    if (isinstance(clause.value, tuple) and not listed) or {*map(type, stated)} - {kind}:
        raise UsageError(
            f"rule {rule}: {clause.field} is {_KIND_WORDS[kind]}, found {clause.value!r}"
        )


def _kind_of(column: pa.DataType) -> type:
    one = column.value_type if pa.types.is_list(column) else column
    if pa.types.is_boolean(one):
        return bool
    return int if pa.types.is_integer(one) else str


def _refuse_answer(rule: str, error: str, api: str | None) -> None:
    try:
        error_code(error)
    except KeyError:
        raise UsageError(f"rule {rule}: Kafka has no error {error}") from None
    if api is not None and (why := why_no_answer(api)) is not None:
        raise UsageError(f"rule {rule}: {why}")


def _effective(rule: Rule) -> Match:
    """Return the match in force: LowerVersion always concerns the responses of ApiVersions."""
    match = rule.match
    if not isinstance(rule.action, LowerVersion):
        return match
    return Match(
        direction=Direction.RESPONSE,
        api=next(name for name, key in API_KEYS.items() if key == API_VERSIONS),
        version_min=match.version_min,
        version_max=match.version_max,
        sources=match.sources,
        targets=match.targets,
        client_id=match.client_id,
        where=match.where,
        skip=match.skip,
        times=match.times,
    )


def _is_metadata(clause: Clause) -> bool:
    return bool(clause.value) is (clause.operator is not Operator.EXCLUDES)


def _fetches_metadata(row: Mapping[str, Any], frame: Frame) -> bool:
    """Return whether it is of the metadata log: an answer's content does not say of which."""
    if frame.header.api_key == FETCH:
        return frame.link.asks(Role.CONTROLLER)
    return bool(row.get("topic") == METADATA_TOPIC)


def _meets(clause: Clause, row: Mapping[str, Any], frame: Frame) -> bool:
    found = _FIELDS.get(clause.field, _column(clause.field))(row, frame)
    if found is None:
        return False
    if isinstance(found, list | frozenset):
        return _meets_all(clause, found)
    if isinstance(found, str) and clause.operator is not Operator.IS:
        return (str(clause.value) in found) is (clause.operator is Operator.INCLUDES)
    return bool(found == clause.value) is (clause.operator is not Operator.EXCLUDES)


def _meets_all(clause: Clause, found: list[int] | frozenset[str]) -> bool:
    """Return whether a list meets the clause. The order does not count: the ISR is a set."""
    asked = clause.value if isinstance(clause.value, tuple) else (clause.value,)
    match clause.operator:
        case Operator.IS:
            return set(found) == set(asked)
        case Operator.INCLUDES:
            return set(asked) <= set(found)
        case Operator.EXCLUDES:
            return not set(asked) & set(found)


_Field = Callable[[Mapping[str, Any], Frame], Any]


def _column(name: str) -> _Field:
    return lambda row, _: row.get(name)


def _key(row: Mapping[str, Any], _: Frame) -> str | None:
    if row.get("topic") is None or row.get("partition") is None:
        return None
    return f"{row['topic']}-{row['partition']}"


_FIELDS: Final[Mapping[str, _Field]] = {
    "key": _key,
    "metadata": _fetches_metadata,
    "record_type": lambda _, frame: record_types(frame.decoded.entity),
    "size_bytes": lambda _, frame: len(frame.data),
}
