"""Rules for the wire: what all verbs that lay one have in common.

- hold: {as: join, api: AlterPartition, from: broker-1, where: {isr includes: 2}}

A rule concerns matching frames from the moment it is laid, until `release` or `discard`.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from fencepost.clusters.port import CLIENTS
from fencepost.clusters.stage import Stage
from fencepost.history.failure import SpecError, UsageError
from fencepost.nemesis.targets import Choice, Target, parse_target, target_data
from fencepost.nemesis.verbs.episode import Episode
from fencepost.nemesis.verbs.predicted_state import PredictedState
from fencepost.nemesis.verbs.step import Breaking, Parties
from fencepost.nemesis.verbs.step_source import StepSource
from fencepost.nemesis.verbs.verb import Capabilities, Director, Verb
from fencepost.nemesis.wire.apis import API_KEYS
from fencepost.nemesis.wire.rules import Action, Clause, Direction, Match, Operator, Rule
from fencepost.nemesis.wire.zookeeper.messages import ONE_WAY
from fencepost.nemesis.words import did_you_mean, rule_name

_COMMON: Final = ("as", "api", "of", "from", "to", "version", "client", "where", "skip", "times")
_CLAUSE: Final = re.compile(r"(.+?)(?: (includes|excludes))?")
_VERSION: Final = re.compile(r"(>=|<=)?\s*(\d+)")
_APIS: Final = tuple(API_KEYS)

Operand = Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lay(Breaking):
    """Lay a rule on the wire: it concerns matching frames from now on."""

    name: str
    action: Action
    match: Match
    """The match without its sources and targets: these are resolved when the rule is laid."""
    source: Parties = field(default_factory=Parties)
    target: Parties = field(default_factory=Parties)


def rule_verb(
    word: str,
    example: tuple[str, ...],
    action: type,
    parse_action: Callable[[Operand], Action],
    *,
    own: tuple[str, ...] = (),
    own_data: Callable[[Any], dict[str, object]] = lambda _action: {},
    requests_only: bool = False,
    always: tuple[str, Direction] | None = None,
    harmless: bool = False,
    episodes: tuple[Episode, ...] = (),
    tones: tuple[str, str] | None = None,
) -> Verb[Lay]:
    """Make a verb that lays a rule.

    `parse_action` reads the operand, `own` are its keys in addition to those of every rule, and
    `own_data` writes them. `always`: the API and the direction of what it concerns, whatever the
    operand says. `harmless`: it only watches.
    """

    def parse(written: StepSource) -> Lay:
        data = _operand(written, own)
        done = parse_action(data)
        match = _match(data, always)
        if requests_only and match.direction is Direction.RESPONSE:
            raise SpecError(("of",), f"{word} applies to requests only")
        name = rule_name(data.get("as", word))
        # It decodes, which takes half a second to import: only plays that lay rules wait for it.
        from fencepost.nemesis.wire.matching import refuse_impossible  # noqa: PLC0415

        try:
            refuse_impossible(Rule(name=name, action=done, match=match))
        except UsageError as error:
            raise SpecError((), str(error)) from None
        return Lay(
            name=name,
            action=done,
            match=match,
            source=_parties(data, "from", written.stage),
            target=_parties(data, "to", written.stage),
        )

    return Verb(
        word=word,
        example=example,
        step=Lay,
        fits=lambda lay: isinstance(lay.action, action),
        parse=parse,
        data=lambda lay: {word: _lay_data(lay) | own_data(lay.action)},
        perform=_on_the_wire,
        follow=_follow,
        why_not=_why_not,
        fault=not harmless,
        concerns_clients=lambda lay: lay.source.clients or lay.target.clients,
        episodes=episodes,
        tones=tones,
    )


def api_of(data: Operand) -> str:
    """Read the name of the API."""
    name = str(data.get("api"))
    if name not in _APIS:
        raise SpecError(("api",), f"unknown API {name!r}; {did_you_mean(name, _APIS)}")
    return name


def count_of(data: Operand, key: str, *, minimum: int) -> int:
    """Read a whole number of `minimum` or more."""
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < minimum:
        raise SpecError((key,), f"expected a number of {minimum} or more, found {value!r}")
    return value


def _on_the_wire(lay: Lay, director: Director) -> bool:
    return director.on_the_wire(lay)


def _follow(lay: Lay, predicted: PredictedState) -> None:
    predicted.begin(lay.name, predicted.rules, what="rule")


def _why_not(lay: Lay, there: Capabilities) -> str | None:
    return there.why_no_wire or there.why_no_rule(lay.action, lay.match)


def _operand(written: StepSource, own: tuple[str, ...]) -> Operand:
    word, operand = written.word, written.operand
    if not isinstance(operand, dict):
        raise SpecError((), f"{word} takes a rule, e.g. {{as: {word}-1, api: AlterPartition}}")
    data = {str(key): value for key, value in operand.items()}
    allowed = (*_COMMON, *own)
    for key in data:
        if key not in allowed:
            raise SpecError((key,), f"unknown key {key!r}; {did_you_mean(key, allowed)}")
    if data.get("to") == CLIENTS:
        raise SpecError(
            ("to",), "no link leads to clients; their responses are {from: clients, of: response}"
        )
    return data


def _match(data: Operand, always: tuple[str, Direction] | None) -> Match:
    stated = always or (api_of(data) if "api" in data else None, _direction(data))
    version_min, version_max = _versions(data)
    return Match(
        direction=stated[1],
        api=stated[0],
        version_min=version_min,
        version_max=version_max,
        client_id=str(data["client"]) if "client" in data else None,
        where=_clauses(data.get("where", {})),
        skip=count_of(data, "skip", minimum=0) if "skip" in data else 0,
        times=count_of(data, "times", minimum=1) if "times" in data else None,
    )


def _direction(data: Operand) -> Direction:
    found = data.get("of", ONE_WAY.get(str(data.get("api")), Direction.REQUEST))
    if found not in (*Direction,):
        raise SpecError(("of",), f"expected request or response, found {found!r}")
    return Direction(str(found))


def _versions(data: Operand) -> tuple[int | None, int | None]:
    if "version" not in data:
        return None, None
    found = _VERSION.fullmatch(str(data["version"]).strip())
    if found is None:
        raise SpecError(("version",), f'write 3, ">=3" or "<=2", not {data["version"]!r}')
    number = int(found[2])
    return (None if found[1] == "<=" else number, None if found[1] == ">=" else number)


def _clauses(value: object) -> tuple[Clause, ...]:
    if not isinstance(value, dict):
        raise SpecError(("where",), "expected fields and values, e.g. {isr includes: 2}")
    return tuple(_clause(str(key), wanted) for key, wanted in value.items())


def _clause(text: str, value: object) -> Clause:
    from fencepost.nemesis.wire.clause_fields import CLAUSE_FIELDS  # noqa: PLC0415  # with pyarrow

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


def _parties(data: Operand, key: str, stage: Stage) -> Parties:
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
    plain = {f"{role}s": f"all {role}s" for role in stage.node_roles.names(stage.nodes)}
    return parse_target(plain.get(str(value), value), stage)


def _lay_data(lay: Lay) -> dict[str, object]:
    match = lay.match
    data: dict[str, object] = {"as": lay.name}
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
    return data


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
