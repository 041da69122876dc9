"""Frozen values from parsed YAML: unknown keys are errors, and types are checked once, here.

Each reader raises one SpecError for all the mistakes that it finds.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from importlib.resources import files
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from fencepost.history.failure import Mistakes, SpecError
from fencepost.nemesis.words import did_you_mean, duration_s, property_texts

T = TypeVar("T")
U = TypeVar("U")


def build(kind: type[T], data: Mapping[str, Any], *, called: Mapping[str, str] = {}) -> T:
    """Return a `kind`, a dataclass, from a mapping of its fields. A SpecError names the wrong ones.

    `called`: the words that stand for fields, where they are not the fields' own names.
    """
    words = {called.get(field.name, field.name): field.name for field in fields(kind)}  # type: ignore[arg-type]  # a dataclass
    read = MappingReader(data)
    unknown = read.refuse_unknown(list(words))
    _refuse_truth_as_number(kind, data, words, read.mistakes)
    try:
        built = TypeAdapter(kind).validate_python(
            {words[key]: data[key] for key in data if key in words}
        )
    except ValidationError as error:
        _note_fields(error, called, read.mistakes, are_all_there=not unknown)
    read.mistakes.refuse()
    return built


def _refuse_truth_as_number(
    kind: type[Any], data: Mapping[str, Any], words: Mapping[str, str], mistakes: Mistakes
) -> None:
    """Note `true` where a number belongs, which pydantic takes for 1."""
    types = {field.name: str(field.type) for field in fields(kind)}
    for key, value in data.items():
        of = types.get(words.get(key, ""), "")
        if isinstance(value, bool) and re.search(r"\b(int|float)\b", of) and "bool" not in of:
            mistakes.note((key,), f"expected a number, found {str(value).lower()}")


def _note_fields(
    error: ValidationError, called: Mapping[str, str], mistakes: Mistakes, *, are_all_there: bool
) -> None:
    """Note each wrong field once: a union of types has a complaint for each of them."""
    seen = set()
    for found in error.errors():
        path = tuple(part for part in found["loc"] if not str(part).startswith("function-"))[:1]
        missing = found["type"] == "missing"
        # A missing field may be there, under a name that does not exist.
        if path not in seen and (are_all_there or not missing):
            value = "" if missing or not path else f", found {found['input']!r:.200}"
            message = f"{found['msg'].removeprefix('Value error, ')}{value}"
            mistakes.note(tuple(called.get(str(key), key) for key in path), message)
        seen.add(path)


def refuse_unknown(data: Mapping[str, Any], allowed: Sequence[str]) -> None:
    """Raise SpecError for the keys that do not exist here."""
    mistakes = Mistakes()
    for key in data:
        if key not in allowed:
            mistakes.note((str(key),), f"unknown key {key!r}; {did_you_mean(str(key), allowed)}")
    mistakes.refuse()


def mapping(data: object, *, example: str) -> dict[str, Any]:
    """Return `data` as a mapping; raise SpecError with an example if it is something else."""
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise SpecError((), f"expected keys and values, e.g. {example}; found {data!r:.200}")
    return {str(key): value for key, value in data.items()}


def settings(data: object) -> dict[str, str]:
    """Return settings as a properties file has them: `true`, not `True`."""
    found = mapping(data, example="{min.insync.replicas: 2}")
    return property_texts(found)


def span_s(data: object) -> tuple[float, float]:
    """Return the span of `[2s, 5s]`, or of one duration for both ends, in seconds."""
    ends = data if isinstance(data, list) else [data, data]
    if len(ends) != 2:  # noqa: PLR2004  # a span has two ends
        raise SpecError((), f"expected a duration or two of them, e.g. [2s, 5s]; found {data!r}")
    low, high = (duration_s(end) for end in ends)
    if low > high:
        raise SpecError((), f"expected the shorter duration first; found {data!r}")
    return low, high


class MappingReader:
    """A mapping that is read key by key. `refuse` raises the mistakes of all that was read."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data
        self.mistakes = Mistakes()
        self.unread: set[str] = set()
        """The keys whose values cannot be."""

    def at(self, key: str, parse: Callable[[Any], T], *, otherwise: U) -> T | U:
        """Return the value under `key`; `otherwise` if it is absent or cannot be."""
        if key not in self.data:
            return otherwise
        try:
            return parse(self.data[key])
        except SpecError as error:
            self.mistakes.add(error.below(key))
            self.unread.add(key)
            return otherwise

    def refuse_unknown(self, allowed: Sequence[str]) -> Sequence[str]:
        """Note the keys that do not exist here, and return them."""
        with self.mistakes.below():
            refuse_unknown(self.data, allowed)
        return [key for key in self.data if key not in allowed]


def anomalies() -> Sequence[str]:
    """Return the names of all anomalies; a list, since the checks take a second to import."""
    return files("fencepost.checkers").joinpath("anomalies.txt").read_text().split()


def known_words(words: Iterable[object], known: Sequence[str], *, what: str) -> tuple[str, ...]:
    """Return these words.

    Raise SpecError for those that are not `known`. `what`: the kind of each word.
    """
    found, mistakes = tuple(map(str, words)), Mistakes()
    for index, word in enumerate(found):
        if word not in known:
            mistakes.note((index,), f"unknown {what} {word!r}; {did_you_mean(word, known)}")
    mistakes.refuse()
    return found
