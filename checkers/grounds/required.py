"""G8 required-checks: What the scenario demands to be judged was judged.

Each check that the scenario demands (`require: {judged: […]}`) was asked, had a case to judge, and
can fail on this cluster.

Meaning: A run that is about one promise says nothing if nothing could have broken it.
Case: a check that the scenario demands
Source: a check that cannot fail is not yet a check
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from fencepost.checkers.entry import CatalogueEntry, Kind
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.manifest import Manifest

ENTRY: Final = CatalogueEntry.of(
    __doc__,
    kind=Kind.GROUND,
)
_NAME: Final = ENTRY.name


def required(
    manifest: Manifest,
    results: Mapping[str, CheckResult],
    entry_of: Callable[[str], CatalogueEntry],
) -> CheckResult:
    """Check that each demanded check was asked, judged something, and can fail.

    `entry_of`: the entry of a check, by name.
    """
    missing = list(_missing(manifest.required_checks, results, entry_of))
    return CheckResult(
        check=_NAME,
        validity=Validity.UNKNOWN if missing else Validity.VALID,
        case_count=len(manifest.required_checks),
        reason="; ".join(missing),
    )


def _missing(
    names: Iterable[str],
    results: Mapping[str, CheckResult],
    entry_of: Callable[[str], CatalogueEntry],
) -> Iterable[str]:
    for name in names:
        entry = entry_of(name)
        match results.get(name):
            case None:
                tables = ", ".join(entry.needs)
                yield f"{name} is demanded and was not asked: it needs the tables {tables}"
            case CheckResult(validity=Validity.NOT_JUDGED):
                yield f"{name} is demanded and had nothing to judge: no case, which is {entry.case}"
            case CheckResult(validity=Validity.FIGURE):
                yield f"{name} is demanded and cannot fail on this cluster"
            case _:
                continue


CHECKS: Final = (ENTRY,)
