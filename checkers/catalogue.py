"""Every check, found in the folders of the subjects: a new module with CHECKS is a new check.

`CHECKS` holds what a module has to say: a check of a key's log (`KeyCheck`), of tables of the
cluster (`TableCheck`), of several that are answered together (`CheckGroup`), or the
`CatalogueEntry` of one that is answered from the sums of the run (`checkers.grounds`).

A verdict has one answer an entry that was asked, in the order of the ids; the documentation is
generated from the entries (`checkers.anomalies_page`); scenarios name what they expect by these
names. A subject never imports the catalogue: what it needs of it, it is given.
"""

import pkgutil
import re
from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import Final

from fencepost import checkers
from fencepost.checkers.check_group import CheckGroup
from fencepost.checkers.data_plane.key_check import KeyCheck
from fencepost.checkers.entry import SUBJECTS, CatalogueEntry, Kind
from fencepost.checkers.table_check import TableCheck

Check = CatalogueEntry | KeyCheck | TableCheck | CheckGroup


_MACHINERY: Final = frozenset({"metadata", "runner"})
"""Folders that are no subjects."""


def _found() -> Iterator[tuple[str, Check]]:
    """Yield the checks, each with the name of its module."""
    for folder in pkgutil.iter_modules(checkers.__path__):
        if not folder.ispkg or folder.name in _MACHINERY:
            continue
        subject = import_module(f"{checkers.__name__}.{folder.name}")
        for found in pkgutil.iter_modules(subject.__path__, f"{subject.__name__}."):
            for check in getattr(import_module(found.name), "CHECKS", ()):
                yield found.name, check


def _entries(check: Check) -> tuple[CatalogueEntry, ...]:
    match check:
        case CatalogueEntry():
            return (check,)
        case CheckGroup():
            return check.entries
        case KeyCheck() | TableCheck():
            return (check.entry,)


def _place(entry: CatalogueEntry) -> tuple[int, int, str]:
    letter, number, rest = re.findall(r"[A-Z]|\d+|[a-z]*$", entry.id)[:3]
    return list(SUBJECTS).index(letter), int(number), rest


_MODULES: Final = tuple(_found())
_FOUND: Final = tuple(check for _, check in _MODULES)

CATALOGUE: Final = tuple(
    sorted((entry for check in _FOUND for entry in _entries(check)), key=_place)
)
"""The entries of all checks, in the order of a verdict."""

MODULES: Final[Mapping[str, str]] = {
    entry.name: module for module, check in _MODULES for entry in _entries(check)
}
"""The module of each check by its name: there it is argued why its rule is sound."""

_BY_NAME: Final = {entry.name: entry for entry in CATALOGUE}

KEY_CHECKS: Final[Mapping[str, KeyCheck]] = {
    check.entry.name: check
    for check in sorted(
        (one for one in _FOUND if isinstance(one, KeyCheck)), key=lambda one: _place(one.entry)
    )
    if check.entry.kind is Kind.ANOMALY
}
"""The checks of keys by name, in order; without the assumptions, which are judged with each."""

TABLE_CHECKS: Final = tuple(
    sorted(
        (one for one in _FOUND if isinstance(one, TableCheck)), key=lambda one: _place(one.entry)
    )
)
"""The checks of tables of the cluster, in order: neighbours read the same tables."""

GROUPS: Final = tuple(one for one in _FOUND if isinstance(one, CheckGroup))


def entry_of(name: str) -> CatalogueEntry:
    """Return the entry of this name. Raises KeyError if the catalogue has none."""
    return _BY_NAME[name]


def asked(recorded: Collection[str], *, bounds: Collection[str] = ()) -> tuple[CatalogueEntry, ...]:
    """Return the entries that a run which recorded these tables has to answer, in order.

    `bounds`: those that the run is held to.
    """
    return tuple(
        entry
        for entry in CATALOGUE
        if set(entry.needs) <= set(recorded) and (not entry.bound or entry.bound in bounds)
    )


def names_of(kind: Kind) -> tuple[str, ...]:
    """Return the names of all checks of a kind, in order."""
    return tuple(entry.name for entry in CATALOGUE if entry.kind is kind)
