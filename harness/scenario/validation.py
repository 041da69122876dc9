"""From parsed YAML to frozen values: unknown keys are errors, and types are checked once, here."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from history.failure import SpecError
from nemesis.words import did_you_mean, duration_s

__all__ = ["at", "build", "mapping", "refuse_unknown", "settings", "span_s"]

T = TypeVar("T")


def build(kind: type[T], data: Mapping[str, Any]) -> T:
    """The dataclass `kind` from a mapping of its fields. SpecError names the first wrong one."""
    refuse_unknown(data, [field.name for field in fields(kind)])  # type: ignore[arg-type]  # a dataclass
    try:
        return TypeAdapter(kind).validate_python(dict(data))
    except ValidationError as error:
        first = error.errors()[0]
        path = tuple(part for part in first["loc"] if not str(part).startswith("function-"))
        whole = first["type"] == "missing" or not path
        found = "" if whole else f", found {first['input']!r}"
        raise SpecError(path[:1], f"{first['msg'].removeprefix('Value error, ')}{found}") from None


def refuse_unknown(data: Mapping[str, Any], allowed: list[str]) -> None:
    """SpecError on the first key that does not exist here."""
    for key in data:
        if key not in allowed:
            raise SpecError((str(key),), f"unknown key {key!r}; {did_you_mean(str(key), allowed)}")


def mapping(data: object, *, example: str) -> dict[str, Any]:
    """`data` as a mapping. SpecError with an example if it is something else."""
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise SpecError((), f"expected keys and values, e.g. {example}; found {data!r}")
    return {str(key): value for key, value in data.items()}


def settings(data: object) -> dict[str, str]:
    """Settings as a properties file has them: `true`, not `True`."""
    found = mapping(data, example="{min.insync.replicas: 2}")
    return {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in found.items()
    }


def span_s(data: object) -> tuple[float, float]:
    """`[2s, 5s]` or one duration for both ends, in seconds."""
    ends = data if isinstance(data, list) else [data, data]
    if len(ends) != 2:  # noqa: PLR2004  # a span has two ends
        raise SpecError((), f"expected a duration or two of them, e.g. [2s, 5s]; found {data!r}")
    low, high = (duration_s(end) for end in ends)
    if low > high:
        raise SpecError((), f"the first duration is the shorter one; found {data!r}")
    return low, high


def at(
    key: str, data: Mapping[str, Any], parse: Callable[[Any], T], *, default: T | None = None
) -> T:
    """The value under `key`, parsed, or `default`. SpecError with the path from `key` on."""
    if key not in data and default is not None:
        return default
    try:
        return parse(data.get(key))
    except SpecError as error:
        raise error.below(key) from None
