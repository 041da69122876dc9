"""JSON as a frozen dataclass: each field of the type that the class states, or a line that says so.

Other modules trust the result. A dataclass filled from JSON unchecked holds a string
where a time should be, and the first check that compares it dies, or compares strings.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Value = TypeVar("Value")

_NAMES: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a string",
    NoneType: "null",
}
_WORDS_MAX: Final = 60


def parsed(kind: type[Value], content: Any, *, where: str = "") -> Value:
    """Return the JSON value `content` as a `kind`: a dataclass, and whatever its fields may be.

    Raises ValueError, with the path of the field below `where`, if it is of another type, if one
    that has no default is missing, or if the class has no such field.
    """
    value: Value = _parsed(kind, content, where)
    return value


def _parsed(kind: Any, content: Any, where: str) -> Any:
    if is_dataclass(kind):
        return _object(kind, _checked(content, dict, "an object", where), where)
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _choice(get_args(kind), content, where)
    if origin is Literal:
        return _one_of(get_args(kind), content, where)
    if origin is tuple:
        items = _checked(content, list, "a list", where)
        return tuple(
            _parsed(get_args(kind)[0], item, f"{where}[{place}]")
            for place, item in enumerate(items)
        )
    if origin is not None:
        items = _checked(content, dict, "an object", where)
        return {
            key: _parsed(get_args(kind)[1], item, _at(where, key)) for key, item in items.items()
        }
    if issubclass(kind, Enum):
        return kind(_one_of([one.value for one in kind], content, where))
    # JSON has one kind of number. In Python, but not in JSON, true is one.
    fits = isinstance(content, (int, float) if kind is float else kind)
    if not fits or (isinstance(content, bool) and kind is not bool):
        raise _WrongTypeError(where, content, _NAMES[kind])
    return content


def _one_of(words: Sequence[str], content: Any, where: str) -> str:
    if not isinstance(content, str) or content not in words:
        raise _WrongTypeError(where, content, f"one of {', '.join(map(json.dumps, words))}")
    return content


def _object(kind: Any, content: Mapping[str, Any], where: str) -> Any:
    types = _types(kind)
    if unknown := sorted(content.keys() - types.keys()):
        raise ValueError(f"{_at(where, unknown[0])} is not a known key")
    for item in fields(kind):
        bare = item.default is MISSING and item.default_factory is MISSING
        if bare and item.name not in content:
            raise ValueError(f"{_at(where, item.name)} is missing")
    return kind(
        **{name: _parsed(types[name], item, _at(where, name)) for name, item in content.items()}
    )


@cache
def _types(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _choice(kinds: tuple[Any, ...], content: Any, where: str) -> Any:
    """Return what may be null: the only union that is there."""
    (other,) = (kind for kind in kinds if kind is not NoneType)
    if content is None:
        return None
    try:
        return _parsed(other, content, where)
    except _WrongTypeError as mistake:
        if mistake.where != where:
            raise
        raise _WrongTypeError(where, content, f"{mistake.expected}, or null") from None


class _WrongTypeError(ValueError):
    """A value of another type than its field's."""

    def __init__(self, where: str, content: Any, expected: str) -> None:
        try:
            words = json.dumps(content)
        except RecursionError:
            words = "something nested"
        shown = words if len(words) <= _WORDS_MAX else f"{words[:_WORDS_MAX]}…"
        super().__init__(f"{where or 'it'} is {shown}, expected {expected}")
        self.where = where
        self.expected = expected


def _checked(content: Any, kind: type, expected: str, where: str) -> Any:
    if not isinstance(content, kind):
        raise _WrongTypeError(where, content, expected)
    return content


def _at(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
