"""The weight of an answer: how much a check judged, and whether it could have failed.

A check that finds nothing among no cases has proven nothing, so it is *not judged*; one that could
not have failed is a *figure*. This is decided here alone, for every check there is.
"""

from dataclasses import replace

from fencepost.checkers.catalogue import entry_of
from fencepost.checkers.verdict import CheckResult, Validity
from fencepost.history.manifest import Promises


def with_case_count(result: CheckResult, promises: Promises) -> CheckResult:
    """Return the answer; one that found nothing is called by what it is worth."""
    if result.validity is not Validity.VALID:
        return result
    if not entry_of(result.check).can_fail(promises):
        return replace(result, validity=Validity.FIGURE)
    if not result.case_count:
        return replace(result, validity=Validity.NOT_JUDGED)
    return result
