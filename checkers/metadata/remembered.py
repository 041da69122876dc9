"""What several checks read from one table is read once, and remembered as long as the table lives.

Reading a tape as requests takes longer than most checks do, and some thirty checks do it. A table,
or the source of one, is remembered by its identity: tables are never changed.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar
from weakref import finalize

P = ParamSpec("P")
Table = TypeVar("Table")
Made = TypeVar("Made")

_BY_VALUE: Final = (str, int, tuple)


def remembered(
    read: Callable[Concatenate[Table, P], Made],
) -> Callable[Concatenate[Table, P], Made]:
    """Wrap a function of a table and of whatever else it takes.

    Further arguments count as the same by value if they are words, numbers or tuples, else by
    identity. What was made must not be changed, and cannot be an iterator.
    """
    made: dict[tuple[Any, ...], tuple[Made, Any]] = {}

    @wraps(read)
    def of(table: Table, /, *args: P.args, **kwargs: P.kwargs) -> Made:
        place = (id(table), *map(_same, args), *((name, _same(kwargs[name])) for name in kwargs))
        if place not in made:
            # The other arguments are kept, so that no later one gets the identity of any of them.
            made[place] = (read(table, *args, **kwargs), (args, kwargs))
            finalize(table, made.pop, place, None)
        return made[place][0]

    return of


def _same(argument: Any) -> Any:
    return argument if isinstance(argument, _BY_VALUE) else id(argument)
