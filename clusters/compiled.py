"""The test for a compiled simulator, and what its native classes need at run time.

A compiled build (decision 29) writes dataclasses out as plain classes, of which mypyc makes native
ones. Their constructors and comparisons are compiled; everything else that `dataclasses` gives to a
class they take over from a twin, a dataclass of the same fields.
"""

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_ADOPTED: Final = ("__dataclass_fields__", "__dataclass_params__", "__match_args__")


def is_compiled() -> bool:
    """Return whether this process runs compiled worlds, which behave the same but run faster."""
    found = importlib.util.find_spec("fencepost.clusters.simulation.world")
    assert found is not None
    return not (found.origin or "").endswith(".py")


def adopt(
    native: type,
    annotations: Mapping[str, str],
    defaults: Mapping[str, Any],
    options: Mapping[str, bool],
) -> None:
    """Give a native class what `dataclass(**options)` would have given to one of these fields."""
    body = {**defaults, "__annotations__": dict(annotations), "__module__": __name__}
    decorated: Any = dataclass(**{**options, "slots": False})  # a native class has its own slots
    twin = decorated(type(native.__name__, (), body))
    for name in _ADOPTED:
        setattr(native, name, twin.__dict__[name])
    native.__annotations__ = dict(annotations)
    if "__repr__" not in native.__dict__:
        setattr(native, "__repr__", twin.__repr__)  # noqa: B010  # a method, which mypy lets be
    if twin.__hash__ is None:
        setattr(native, "__hash__", None)  # noqa: B010


def restored(native: Callable[..., Any], values: Mapping[str, Any]) -> Any:
    """A value that was pickled, of a native class."""
    return native(**values)
