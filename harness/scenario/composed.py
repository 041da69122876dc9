"""A scenario that extends another one, and the parameters that are filled in.

Maps are merged key by key, `null` takes a key away, and all else replaces what was there. What a
run is made of, and stores, is the result: it needs neither the other file nor the parameters.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml

from fencepost.harness.scenario.sources import find_scenario
from fencepost.harness.scenario.yaml_file import Document, load_document, value_of
from fencepost.history.failure import Mistakes, SpecError, UsageError

PARAMETERS: Final = "parameters"
_EXTENDS: Final = "extends"
_CHAIN_MAX: Final = 8
_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_USE: Final = re.compile(r"\$\{([^{}]*)\}")
_KINDS: Final = {
    bool: "true or false",
    int: "a number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "a map",
}


Path_ = tuple[str | int, ...]


def chosen_values(texts: Sequence[str]) -> dict[str, object]:
    """Return the values of parameters by name, of texts as `--set` takes them: `rate=600`.

    A value is YAML: `[kill, pause]` is a list. Scenarios have no dates: `2026-11-29` is text.
    Raises UsageError.
    """
    found: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise UsageError(f"--set {text!r:.80}: write --set NAME=VALUE")
        if name in found:
            raise UsageError(f"--set {name}: it is given twice")
        try:
            found[name] = value_of(value)
        except (yaml.YAMLError, ValueError):
            raise UsageError(f"--set {name}: {value!r:.80} is not YAML") from None
        if found[name] is None:
            raise UsageError(
                f"--set {name}: {value or 'nothing'} is not a value: leave --set out for "
                f"the default, or write --set '{name}=\"{value}\"' for text"
            )
    return found


def chosen_texts(texts: Sequence[str]) -> dict[str, str]:
    """Return the values by name as one reads them, of texts as `--set` takes them."""
    return {name: as_value(value) for name, value in chosen_values(texts).items()}


def composed(document: Document, chosen: Mapping[str, object]) -> Document:
    """Return the document with what it extends laid below it, and its parameters filled in.

    `chosen`: the values of parameters, by name. Raises UsageError with the place.
    """
    plain = not {_EXTENDS, PARAMETERS} & set(document.data)
    if plain and not chosen and "${" not in document.text:
        return document
    whole = _extended(document, (Path(document.name).resolve(),))
    try:
        data = _filled(whole, chosen)
    except SpecError as error:
        raise whole.error(error) from None
    extends = document.data.get(_EXTENDS)
    with_what = [f"extending {extends}"] if extends else []
    with_what += [f"{name}={as_value(value)}" for name, value in chosen.items()]
    head = f"# {Path(document.name).name}{', ' if with_what else ''}{', '.join(with_what)}\n"
    text = head + yaml.safe_dump(data, sort_keys=False, allow_unicode=True)
    return replace(whole, data=data, text=text)


def _extended(document: Document, chain: tuple[Path, ...]) -> Document:
    """Return the document laid over what it extends, and that over what it extends itself."""
    if _EXTENDS not in document.data:
        return document
    try:
        path = _parent_of(document, chain)
    except SpecError as error:
        raise document.error(error) from None
    parent = _extended(load_document(path), (*chain, path.resolve()))
    own = {key: value for key, value in document.data.items() if key != _EXTENDS}
    replaced: list[Path_] = []
    try:
        data = _merged(parent.data, own, (), replaced)
    except SpecError as error:
        raise document.error(error) from None
    elsewhere = {
        path: parent.place(path)
        for path in (*parent.lines, *parent.elsewhere)
        if not any(path[: len(head)] == head for head in replaced)
    }
    return replace(document, data=data, elsewhere=elsewhere)


def _parent_of(document: Document, chain: tuple[Path, ...]) -> Path:
    named = document.data[_EXTENDS]
    if "name" not in document.data:
        raise SpecError((_EXTENDS,), "a scenario that extends another needs its own 'name'")
    if not isinstance(named, str):
        raise SpecError((_EXTENDS,), f"expected a scenario's name or file, found {named!r:.80}")
    beside = Path(document.name).parent / named
    try:
        path = beside if beside.is_file() else find_scenario(named)
    except UsageError as error:
        raise SpecError((_EXTENDS,), str(error)) from None
    if path.resolve() in chain:
        raise SpecError((_EXTENDS,), f"{named} extends this scenario itself")
    if len(chain) >= _CHAIN_MAX:
        raise SpecError((_EXTENDS,), f"more than {_CHAIN_MAX} scenarios extend one another")
    return path


def _merged(
    below: Mapping[str, Any], over: Mapping[str, Any], path: Path_, replaced: list[Path_]
) -> dict[str, Any]:
    """Return one map laid over another; note the paths at which it replaces what was there."""
    found = dict(below)
    for key, value in over.items():
        here = (*path, key)
        if isinstance(value, dict) and isinstance(found.get(key), list):
            words = "the extended scenario has a list here, which a map would replace"
            raise SpecError(here, f"{words}: write the whole list, - {{…}}")
        if isinstance(value, dict) and isinstance(found.get(key, {}), dict):
            found[key] = _merged(found.get(key, {}), value, here, replaced)
            continue
        replaced.append(here)
        if value is None and path != (PARAMETERS,):
            found.pop(key, None)
        else:
            found[key] = value
    return found


def _filled(document: Document, chosen: Mapping[str, object]) -> dict[str, Any]:
    values = _values(document, chosen)
    mistakes, used = Mistakes(), set()

    def fill(value: Any, path: Path_) -> Any:
        if isinstance(value, dict):
            return {key: fill(one, (*path, key)) for key, one in value.items()}
        if isinstance(value, list):
            return [fill(one, (*path, index)) for index, one in enumerate(value)]
        if not isinstance(value, str):
            return value
        for name in _USE.findall(value):
            if name not in values:
                mistakes.note(path, f"${{{name}}}: {_no_such(name, values)}")
                return value
            used.add(name)
        if whole := _USE.fullmatch(value):
            return values[whole[1]]
        return _USE.sub(lambda use: _inserted(values[use[1]]), value)

    data = {key: fill(value, (key,)) for key, value in document.data.items() if key != PARAMETERS}
    for name in values:
        if name not in used:
            mistakes.note((PARAMETERS, name), f"the scenario does not use ${{{name}}}")
    mistakes.refuse()
    return data


def _values(document: Document, chosen: Mapping[str, object]) -> dict[str, Any]:
    """Return the value of each parameter: the one that was chosen, or its default."""
    given = document.data.get(PARAMETERS, {})
    if not isinstance(given, dict):
        raise SpecError((PARAMETERS,), f"expected names with defaults, found {given!r:.80}")
    for name in chosen:
        if name not in given:
            raise UsageError(f"--set {name}: {document.name}: {_no_such(name, given)}")
    return dict(_each_value(given, chosen))


def _each_value(
    given: Mapping[str, Any], chosen: Mapping[str, object]
) -> Iterator[tuple[str, object]]:
    for name, default in given.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise SpecError(
                (PARAMETERS, str(name)),
                "a parameter's name has lower-case letters, digits and '_' only",
            )
        value = chosen.get(name, default)
        if value is None:
            raise SpecError((PARAMETERS, name), f"it has no default: give --set {name}=VALUE")
        if "${" in as_value(value):
            raise SpecError((PARAMETERS, name), f"its value {value!r:.80} must not contain ${{…}}")
        if default is not None and _kind(value) != _kind(default):
            raise UsageError(
                f"--set {name}: {value!r:.80} is {_kind(value)}; "
                f"its default, {default!r:.80}, is {_kind(default)}"
            )
        yield name, value


def _kind(value: object) -> str:
    return _KINDS.get(type(value), f"a {type(value).__name__}")


def _no_such(name: str, known: Mapping[str, Any]) -> str:
    if not known:
        return "the scenario has no parameters"
    near = get_close_matches(name, known, n=1)
    meant = f"did you mean {near[0]!r}? " if near else ""
    return f"no parameter {name!r}; {meant}it has: {', '.join(sorted(known))}"


def _inserted(value: object) -> str:
    return value if isinstance(value, str) else as_value(value)


def as_value(value: object) -> str:
    """Return a value as `--set` takes it: YAML on one line."""
    if isinstance(value, str) and _reads_as_itself(value):
        return value
    style = '"' if isinstance(value, str) else None
    dumped = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, width=10_000, default_style=style
    )
    return str(dumped).removesuffix("...\n").strip()


def _reads_as_itself(text: str) -> bool:
    try:
        return bool(value_of(text) == text)
    except (yaml.YAMLError, ValueError):
        return False
