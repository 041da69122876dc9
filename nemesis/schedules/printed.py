"""A schedule, printed: a line for each thing that it may do, indented, with shares and bounds."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from string import Formatter
from textwrap import wrap
from typing import Any, Final

from fencepost.clusters.port import OWN_ROLES, NodeName, NodeRoles
from fencepost.nemesis.mix_spec import MixSpec
from fencepost.nemesis.schedules.deeds import (
    Catch,
    ReleaseAll,
)
from fencepost.nemesis.schedules.draws import (
    Among,
    Amount,
    AnyOf,
    Between,
    Chance,
    Drawn,
    Either,
    EnoughNodes,
    Every,
    Exactly,
    Not,
)
from fencepost.nemesis.schedules.schedule import (
    DURATION,
    NOTHING,
    Again,
    Do,
    Each,
    Lasting,
    Let,
    NamedPart,
    OneOf,
    Schedule,
    Then,
    When,
    one_of,
    rewritten,
    walk,
)
from fencepost.nemesis.verbs.registry import EPISODES, VERBS, verb_of
from fencepost.nemesis.window_kinds import asked_messages
from fencepost.nemesis.wire.rules import Action

_INDENT: Final = "  "
_COLUMNS: Final = 96


def printed(schedule: Schedule) -> str:
    """Return the schedule in lines, and below them the parts that have names.

    The words of steps are those of a play.
    """
    return "\n".join(_wrapped([*_lines(schedule), *_called(schedule)]))


def printed_mix(spec: MixSpec, *, nodes: Sequence[NodeName], roles: NodeRoles = OWN_ROLES) -> str:
    """Return what a mix draws, in lines: for the messages that these nodes send, of those asked."""
    messages = asked_messages(spec, nodes=nodes, roles=roles)

    def asked(value: Any) -> Any:
        if not isinstance(value, OneOf):
            return value
        return OneOf(tuple(one for one in value.options if one.label in ("", *messages)))

    counts = Counter(spec.faults)
    drawn = {kind: rewritten(EPISODES[kind].schedule, asked) for kind in counts}
    gap = _seconds(Between(*spec.gap_s))
    since = "the last one began" if spec.overlap else "all is whole again"
    turns = "one of, and all of them before any comes again" if spec.rounds else "one of"
    faults = [
        line
        for kind, schedule in drawn.items()
        for line in _block(f"{counts[kind]} of {counts.total()}, {kind}", _lines(schedule))
    ]
    lines = [
        *_block(f"again and again, {gap} after {since}", [f"{turns}:", *_deeper(faults)]),
        f"target is one of {', '.join(spec.targets)}",
        f"{DURATION} is {_seconds(Between(*spec.duration_s))}",
        *(f"at most {count} of {role}s down at once" for role, count in spec.down.items()),
        *([f"first, each once: {', '.join(spec.demanded)}"] if spec.demanded else []),
        *_called(*drawn.values()),
    ]
    return "\n".join(_wrapped(lines))


def _called(*schedules: Schedule) -> Iterator[str]:
    """Yield the parts that have names, each once."""
    parts = (part for one in schedules for part in walk(one) if isinstance(part, NamedPart))
    for name, part in dict.fromkeys((one.name, one.part) for one in parts):
        yield from _block(name, _lines(part))


def _deeper(lines: Iterable[str]) -> Iterator[str]:
    return (f"{_INDENT}{line}" for line in lines)


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()))
        yield from wrap(
            line.strip(),
            _COLUMNS,
            initial_indent=indent,
            subsequent_indent=f"{indent}{2 * _INDENT}",
            break_long_words=False,
            break_on_hyphens=False,
        )


def _lines(schedule: Schedule) -> Iterator[str]:
    match schedule:
        case Then(parts=parts):
            for part in parts:
                yield from _lines(part)
        case OneOf():
            yield from _options(schedule)
        case When():
            yield from _either(schedule)
        case Let(name=name, value=AnyOf(values=(Schedule(), *_) as values)):
            yield from _block(f"{name} is", _lines(one_of(*values)))
        case Do(step=step):
            yield _plain(verb_of(step).data(step))
        case Catch():
            yield _catch(schedule)
        case ReleaseAll(then=then) if then is not None:
            yield from _block(f"{_told(schedule)}, and after each", _lines(then))
        case Again(part=part) | Lasting(part=part) | Each(part=part):
            yield from _block(_told(schedule), _lines(part))
        case _:
            yield _told(schedule)


def _either(schedule: When) -> Iterator[str]:
    test, part, otherwise = schedule.test, schedule.part, schedule.otherwise
    if part == NOTHING:
        test, part, otherwise = Not(test), otherwise, part
    yield from _block(_condition(test), _lines(part))
    if otherwise != NOTHING:
        yield from _block("otherwise", _lines(otherwise))


def _options(schedule: OneOf) -> Iterator[str]:
    total = sum(one.weight for one in schedule.options)
    if len(schedule.options) == 1:
        yield from _lines(schedule.options[0].part)
        return
    yield "one of:"
    is_fixed = all(one.given is None for one in schedule.options)
    for one in schedule.options:
        share = _percent(one.weight / total) if is_fixed else f"{one.weight} of up to {total}"
        words = [share, one.label]
        if one.given is not None:
            words.append(_condition(one.given))
        yield from _deeper(_option(words, [*_lines(one.part)]))


def _option(words: list[str], lines: list[str]) -> Iterator[str]:
    yield from _block(", ".join(filter(None, words)), lines or ["nothing"])


def _block(head: str, lines: Any) -> Iterator[str]:
    """Yield the lines under their head; a single plain line beside it."""
    found = [*lines]
    if len(found) == 1 and not found[0].endswith(":"):
        yield f"{head}: {found[0]}"
        return
    yield f"{head}:"
    yield from _deeper(found)


def _catch(rule: Catch) -> str:
    words = [f"{_action(rule.action)} {rule.api or 'all messages'}"]
    words += [f"of {rule.source}"] if rule.source else []
    words += [f"to {rule.to}"] if rule.to else []
    words += ["about the partition"] if rule.of_key else []
    details = [
        _share(rule.isr_share, f"whose isr {rule.isr} follower") if rule.isr else "",
        _share(rule.answers, "the answers"),
        _share(rule.once, "one alone"),
        f"as {rule.name}" if rule.name else "",
    ]
    return ", ".join((" ".join(words), *filter(None, details)))


def _share(share: float, words: str) -> str:
    if share <= 0:
        return ""
    return words if share >= 1 else f"{_percent(share)} {words}"


def _action(action: Action | Drawn) -> str:
    return action.name if isinstance(action, Drawn) else type(action).__name__.lower()


def _condition(test: object) -> str:
    match test:
        case Chance(share=Drawn(name=name)):
            return f"with the {name}"
        case Chance(share=float() as share):
            return _percent(share)
        case Not(test=Chance(share=float() as share)):
            return _percent(1 - share)
        case Not(test=inner):
            return f"unless {_condition(inner).removeprefix('if ')}"
        case Every(tests=tests):
            return ", ".join(map(_condition, tests))
        case Either(tests=tests):
            return " or ".join(map(_condition, tests))
        case _:
            return f"if {_fact(test)}"


def _fact(test: Any) -> str:
    match test:
        case EnoughNodes(among=Among(parties=parties, but_not=(), only=(one,)), count_min=1):
            return f"{', '.join(parties)} is {'among ' if one.endswith('s') else ''}{one}"
        case EnoughNodes(among=among, count_min=count_min):
            some = "is a node" if count_min == 1 else f"are {count_min} nodes"
            return f"there {some} among {_among(among)}"
        case _:
            return _told(test)


def _among(among: Among) -> str:
    counts = {name: among.parties.count(name) for name in among.parties}
    words = ", ".join(name if n == 1 else f"{name} ({n} times)" for name, n in counts.items())
    words += f" that are {' or '.join(among.only)}" if among.only else ""
    return words + (f" but not {', '.join(among.but_not)}" if among.but_not else "")


def _told(value: Any) -> str:
    """Return a value in the words of its class, or else its docstring and its fields."""
    if value.told:
        names = [name for _, name, _, _ in Formatter().parse(value.told) if name]
        return str(value.told.format_map(_said(value, names))).rstrip()
    head = str(type(value).__doc__).partition("\n")[0].rstrip(".")
    said = _said(value, [one.name for one in fields(value)]).items()
    return f"{head[0].lower()}{head[1:]} ({', '.join(f'{name} {words}' for name, words in said)})"


def _said(value: object, names: Iterable[str]) -> dict[str, str]:
    return {name: _field(name, getattr(value, name)) for name in names}


def _field(name: str, value: Any) -> str:
    if name in _BY_NAME:
        return _BY_NAME[name](value)
    match value:
        case type():
            return next(verb.word for verb in VERBS.values() if verb.step is value)
        case Among():
            return _among(value)
        case Between(low=low, high=high, stated=stated):
            return f"the {stated} of the scenario" if stated else f"{low:g} to {high:g}"
        case Amount():
            return _told(value)
        case _:
            return _plain(value)


def _seconds(amount: Amount) -> str:
    match amount:
        case Exactly(value=float() as value):
            return f"{value:g}s"
        case AnyOf(values=values):
            return " or ".join(f"{value:g}s" for value in dict.fromkeys(values))
        case Between(low=low, high=high, stated=""):
            return f"{low:g}s to {high:g}s"
        case _:
            return _field("", amount)


def _plain(value: object) -> str:
    match value:
        case tuple():
            return ", ".join(map(_plain, value))
        case dict():
            return ", ".join(f"{key} {_plain(one)}" for key, one in value.items())
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


_BY_NAME: Final[Mapping[str, Callable[[Any], str]]] = {
    "name": lambda name: name or "it",
    "of": lambda of: "".join(f", {name} {_field(name, value)}" for name, value in of),
    "count": lambda count: f", {_told(count)} of them at most" if count else "",
    "times": lambda times: f"{_told(times)} times" if times else "again and again",
    "shuffled": lambda shuffled: ", in any order" if shuffled else "",
    "discard": lambda discard: ", to discard it" if discard else "",
    "parties": " and ".join,
    "names": " and ".join,
    "time": _seconds,
    "span": _seconds,
    "at_most_s": lambda seconds: f"{seconds:g}s",
    "share": _percent,
}
"""How fields of these names are printed."""
