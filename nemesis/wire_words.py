"""Rules for the wire as a play writes them: `hold`, `drop`, `delay`, … and what they concern.

- hold: {as: join, api: AlterPartition, from: broker-1, where: {isr includes: 2}}
- delay: {as: slow, from: brokers, by: [5ms, 40ms]}
- lower_version: {as: old, api: AlterPartition, to_version: 2, to: active controller}
- cut: {as: lost, api: AlterPartition, from: broker-1, times: 1}
"""

import re
from collections.abc import Mapping
from typing import Final

from kio.schema.errors import ErrorCode

from history.failure import SpecError, UsageError
from nemesis.stage import Stage
from nemesis.steps import Lay, Parties
from nemesis.targets import Choice, Target, parse_target, target_data
from nemesis.topology import CLIENTS
from nemesis.wire.apis import API_KEYS
from nemesis.wire.matching import CLAUSE_FIELDS, refuse_impossible
from nemesis.wire.rules import (
    Action,
    Answer,
    Clause,
    Cut,
    Delay,
    Direction,
    Drop,
    Duplicate,
    Hold,
    LowerVersion,
    Match,
    Operator,
    Reorder,
    Rule,
    Stall,
    Watch,
)
from nemesis.words import did_you_mean, duration_s, duration_text, rule_name

__all__ = ["API_NAMES", "RULE_WORDS", "lay_data", "parse_lay", "rule_word"]

API_NAMES: Final = tuple(API_KEYS)

RULE_WORDS: Final = {
    "hold": Hold,
    "drop": Drop,
    "delay": Delay,
    "duplicate": Duplicate,
    "reorder": Reorder,
    "answer": Answer,
    "lower_version": LowerVersion,
    "stall": Stall,
    "cut": Cut,
    "watch": Watch,
}
_WORD_OF: Final[Mapping[type, str]] = {kind: word for word, kind in RULE_WORDS.items()}

_COMMON: Final = ("as", "api", "of", "from", "to", "version", "client", "where", "skip", "times")
_OWN: Final[Mapping[str, tuple[str, ...]]] = {
    "delay": ("by", "seed"),
    "answer": ("with",),
    "lower_version": ("to_version",),
    "cut": ("passed_on",),
}
_REQUESTS_ONLY: Final = (Duplicate, Reorder, Answer)

_CLAUSE: Final = re.compile(r"(.+?)(?: (includes|excludes))?")
_VERSION: Final = re.compile(r"(>=|<=)?\s*(\d+)")


def parse_lay(word: str, operand: object, stage: Stage, *, at_s: float | None) -> Lay:
    """The rule that a step lays. SpecError with the path to what cannot be."""
    if not isinstance(operand, dict):
        raise SpecError((), f"{word} takes a rule, e.g. {{as: {word}-1, api: AlterPartition}}")
    data = {str(key): value for key, value in operand.items()}
    allowed = (*_COMMON, *_OWN.get(word, ()))
    for key in data:
        if key not in allowed:
            raise SpecError((key,), f"unknown key {key!r}; {did_you_mean(key, allowed)}")
    if data.get("to") == CLIENTS:
        raise SpecError(
            ("to",), "nobody dials clients; what they get is {from: clients, of: response}"
        )
    action = _action(word, data)
    match = _match(word, data, action)
    name = rule_name(data.get("as", word))
    try:
        refuse_impossible(Rule(name=name, action=action, match=match))
    except UsageError as error:
        raise SpecError((), str(error)) from None
    return Lay(
        name=name,
        action=action,
        match=match,
        source=_parties(data, "from", stage),
        target=_parties(data, "to", stage),
        at_s=at_s,
    )


def lay_data(lay: Lay) -> dict[str, object]:
    """The rule as a play writes it; `parse_lay` reads it back."""
    match, found = lay.match, {"as": lay.name}
    data: dict[str, object] = dict(found)
    if match.api is not None:
        data["api"] = match.api
    if match.direction is not Direction.REQUEST:
        data["of"] = str(match.direction)
    for key, parties in (("from", lay.source), ("to", lay.target)):
        if not parties.anybody:
            data[key] = _parties_data(parties)
    if (version := _version_data(match)) is not None:
        data["version"] = version
    if match.client_id is not None:
        data["client"] = match.client_id
    if match.where:
        data["where"] = dict(map(_clause_data, match.where))
    if match.skip:
        data["skip"] = match.skip
    if match.times is not None:
        data["times"] = match.times
    return {rule_word(lay): data | _action_data(lay.action)}


def rule_word(lay: Lay) -> str:
    """The word of a play that lays such a rule."""
    return _WORD_OF[type(lay.action)]


def _action(word: str, data: Mapping[str, object]) -> Action:
    match word:
        case "delay":
            low_s, high_s = _span(data)
            seed = _count(data, "seed", minimum=0) if "seed" in data else None
            return Delay(min_ms=low_s * 1000, max_ms=high_s * 1000, seed=seed)
        case "answer":
            return Answer(error=_error(data))
        case "lower_version":
            return LowerVersion(api=_api(data), max_version=_count(data, "to_version", minimum=0))
        case "cut":
            passed_on = data.get("passed_on", True)
            if not isinstance(passed_on, bool):
                raise SpecError(("passed_on",), f"expected true or false, found {passed_on!r}")
            return Cut(passed_on=passed_on)
        case _:
            return RULE_WORDS[word]()  # type: ignore[no-any-return]  # the words without options


def _match(word: str, data: Mapping[str, object], action: Action) -> Match:
    direction = _direction(word, data)
    if direction is Direction.RESPONSE and isinstance(action, _REQUESTS_ONLY):
        raise SpecError(("of",), f"{word} is for requests")
    version_min, version_max = _versions(data)
    return Match(
        direction=direction,
        api="ApiVersions" if word == "lower_version" else _api(data) if "api" in data else None,
        version_min=version_min,
        version_max=version_max,
        client_id=str(data["client"]) if "client" in data else None,
        where=_clauses(data.get("where", {})),
        skip=_count(data, "skip", minimum=0) if "skip" in data else 0,
        times=_count(data, "times", minimum=1) if "times" in data else None,
    )


def _direction(word: str, data: Mapping[str, object]) -> Direction:
    if word == "lower_version":
        return Direction.RESPONSE
    found = data.get("of", Direction.REQUEST)
    if found not in (*Direction,):
        raise SpecError(("of",), f"expected request or response, found {found!r}")
    return Direction(str(found))


def _api(data: Mapping[str, object]) -> str:
    name = str(data.get("api"))
    if name not in API_NAMES:
        raise SpecError(("api",), f"unknown API {name!r}; {did_you_mean(name, API_NAMES)}")
    return name


def _error(data: Mapping[str, object]) -> str:
    names = [code.name.upper() for code in ErrorCode]
    name = str(data.get("with"))
    if name not in names:
        raise SpecError(("with",), f"unknown error {name!r}; {did_you_mean(name, names)}")
    return name


def _span(data: Mapping[str, object]) -> tuple[float, float]:
    value = data.get("by", "")
    ends = value if isinstance(value, list) else [value, value]
    try:
        low_s, high_s = (duration_s(end) for end in ends)
    except (SpecError, ValueError):
        raise SpecError(("by",), f"expected 20ms or [5ms, 40ms], found {value!r}") from None
    if low_s > high_s:
        raise SpecError(("by",), f"the first duration is the shorter one; found {value!r}")
    return low_s, high_s


def _versions(data: Mapping[str, object]) -> tuple[int | None, int | None]:
    if "version" not in data:
        return None, None
    found = _VERSION.fullmatch(str(data["version"]).strip())
    if found is None:
        raise SpecError(("version",), f'write 3, ">=3" or "<=2", not {data["version"]!r}')
    number = int(found[2])
    return (None if found[1] == "<=" else number, None if found[1] == ">=" else number)


def _count(data: Mapping[str, object], key: str, *, minimum: int) -> int:
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise SpecError((key,), f"expected a number of {minimum} or more, found {value!r}")
    return value


def _clauses(value: object) -> tuple[Clause, ...]:
    if not isinstance(value, dict):
        raise SpecError(("where",), "expected fields and values, e.g. {isr includes: 2}")
    return tuple(_clause(str(key), wanted) for key, wanted in value.items())


def _clause(text: str, value: object) -> Clause:
    found = _CLAUSE.fullmatch(text)
    assert found is not None
    name, operator = found[1].replace(" ", "_"), Operator(found[2] or "is")
    if name not in CLAUSE_FIELDS:
        known = did_you_mean(name, CLAUSE_FIELDS)
        raise SpecError(("where", text), f"unknown field {name!r}; {known}")
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return Clause(field=name, operator=operator, value=tuple(value))
    if not isinstance(value, bool | int | str):
        raise SpecError(("where", text), f"expected a value or a list of ids, found {value!r}")
    return Clause(field=name, operator=operator, value=value)


def _parties(data: Mapping[str, object], key: str, stage: Stage) -> Parties:
    if key not in data:
        return Parties()
    value = data[key]
    if value == CLIENTS:
        return Parties(clients=True)
    try:
        return Parties(target=_target(value, stage))
    except SpecError as error:
        raise error.below(key) from None


def _target(value: object, stage: Stage) -> Target:
    plain = {"brokers": "all brokers", "controllers": "all controllers"}
    return parse_target(plain.get(str(value), value), nodes=stage.nodes, keys=stage.keys)


def _parties_data(parties: Parties) -> object:
    if parties.clients:
        return str(CLIENTS)
    assert parties.target is not None
    if isinstance(parties.target, Choice) and parties.target.share == "all":
        return f"{parties.target.role}s"
    return target_data(parties.target)


def _version_data(match: Match) -> object:
    low, high = match.version_min, match.version_max
    if low == high:
        return low
    return f">={low}" if high is None else f"<={high}"


def _clause_data(clause: Clause) -> tuple[str, object]:
    words = clause.field.replace("_", " ")
    suffix = "" if clause.operator is Operator.IS else f" {clause.operator}"
    value = list(clause.value) if isinstance(clause.value, tuple) else clause.value
    return f"{words}{suffix}", value


def _action_data(action: Action) -> dict[str, object]:
    match action:
        case Delay(min_ms=low, max_ms=high, seed=seed):
            drawn = {} if seed is None else {"seed": seed}
            return {"by": [duration_text(low / 1000), duration_text(high / 1000)], **drawn}
        case Answer(error=error):
            return {"with": error}
        case LowerVersion(api=api, max_version=version):
            return {"api": api, "to_version": version}
        case Cut(passed_on=False):
            return {"passed_on": False}
        case _:
            return {}
