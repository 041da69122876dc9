"""The variants of a night's entry: flags of `fencepost run`, as the file has them."""

from collections.abc import Mapping
from typing import Any, Final

from fencepost.harness.scenario.composed import as_value
from fencepost.harness.scenario.flags import FLAG_PATHS
from fencepost.harness.scenario.validation import MappingReader, mapping
from fencepost.history.failure import SpecError

_SWITCHES: Final = ("no_require", "no_wire", "keep_data")
_WORDS: Final = ("image", "inventory")
_REPEATED: Final = ("without_rule", "set")
_OF_ENTRY: Final = frozenset(("system", "kafka", "release"))
"""The flags that are keys of the entry itself."""
_VARIANT_KEYS: Final = (
    *(name for name in FLAG_PATHS if name not in _OF_ENTRY),
    *_SWITCHES,
    *_WORDS,
    *_REPEATED,
)
_RUNS_MAX: Final = 100_000


def variants(read: MappingReader) -> list[tuple[tuple[str | int, ...], Mapping[str, Any]]]:
    """Return the place and the flags of each variant that can be; note what is wrong of others."""
    if "with" not in read.data:
        return [((), {})]
    value, found = read.data["with"], []
    places: list[tuple[str | int, ...]] = [("with",)]
    if isinstance(value, list):
        places = [("with", index) for index in range(len(value))]
    for place, one in zip(places, value if isinstance(value, list) else [value], strict=True):
        with read.mistakes.below(*place):
            found.append((place, _variant(one)))
    return found


def _variant(value: object) -> Mapping[str, Any]:
    given = mapping(value, example="{nemesis: kill, time_limit: 2m}")
    read = MappingReader({key.replace("-", "_"): one for key, one in given.items()})
    read.refuse_unknown(_VARIANT_KEYS)
    found: dict[str, Any] = {}
    for key, one in read.data.items():
        if key in _SWITCHES and not isinstance(one, bool):
            read.mistakes.note((key,), f"expected true or false, found {one!r:.80}")
        elif key == "without_rule":
            found[key] = read.at(key, texts, otherwise=())
        elif key == "set":
            found[key] = read.at(key, _chosen, otherwise=())
        elif key not in _SWITCHES and isinstance(one, list):
            found[key] = ",".join(map(str, one))
        elif key in ("rate", "concurrency"):
            found[key] = read.at(key, counted_from_1, otherwise=0)
        elif key not in _SWITCHES and not isinstance(one, str | int):
            read.mistakes.note((key,), f"expected a word, found {one!r:.80}")
        else:
            found[key] = one if key in _SWITCHES else str(one)
    read.mistakes.refuse()
    return found


def _chosen(value: object) -> tuple[str, ...]:
    """Return the values of parameters as `--set` takes them."""
    given = mapping(value, example="{rate: 600}")
    return tuple(f"{name}={as_value(one)}" for name, one in given.items())


def flag_words(flags: Mapping[str, Any]) -> list[str]:
    """Return flags, by their names with `_`, as a command line has them."""
    words = []
    for name, value in flags.items():
        flag = f"--{name.replace('_', '-')}"
        if name in _SWITCHES:
            words += [flag] if value else []
        elif name in _REPEATED:
            words += [word for one in value for word in (flag, one)]
        else:
            words += [flag, str(value)]
    return words


def texts(value: object) -> tuple[str, ...]:
    """Return a word, or a list of different ones."""
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(one, str) and one for one in values):
        raise SpecError((), f"expected a name, or a list of names; found {value!r:.80}")
    return tuple(dict.fromkeys(values))


def counted_from_1(value: object) -> int:
    """Return a number of things, at least one. Raises SpecError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _RUNS_MAX:
        raise SpecError((), f"expected a whole number from 1 to {_RUNS_MAX:,}, found {value!r:.80}")
    return value
