"""Whether an answer is worth anything: how much it judged, and whether it could have failed.

A check that finds nothing among no cases has proven nothing, so it is *not judged*; one that could
not have failed is a *figure*. This is decided here alone, for every check there is. What a scenario
demands to be judged (`require: {judged: [...]}`) and was not makes the run unknown.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from checkers.catalogue import entry_of
from checkers.verdict import CheckResult, Validity
from history.manifest import Manifest, Promises

__all__ = ["required", "weighed"]


def weighed(result: CheckResult, promises: Promises) -> CheckResult:
    """The answer, with what found nothing called by what it is worth."""
    if result.validity is not Validity.VALID:
        return result
    if not entry_of(result.check).can_fail(promises):
        return replace(result, validity=Validity.FIGURE)
    if not result.case_count:
        return replace(result, validity=Validity.NOT_JUDGED)
    return result


def required(manifest: Manifest, results: Mapping[str, CheckResult]) -> CheckResult:
    """The answer of the ground `required-checks`: what the scenario demands was judged."""
    missing = list(_missing(manifest.required_checks, results))
    return CheckResult(
        check="required-checks",
        validity=Validity.UNKNOWN if missing else Validity.VALID,
        case_count=len(manifest.required_checks),
        reason="; ".join(missing),
    )


def _missing(names: Iterable[str], results: Mapping[str, CheckResult]) -> Iterable[str]:
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
