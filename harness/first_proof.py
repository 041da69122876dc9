"""When the first violation was there to be seen: the operations of its proof had ended.

No checker runs while a cluster does, so this is no time of detection: it says how early in the run
an observer with the same operations could have known.
"""

from collections.abc import Collection

from checkers.verdict import CheckResult, Validity, Verdict
from history.reader import table_files
from history.run_directory import RunDirectory
from report.anomalies import operations_at

__all__ = ["first_proof_seconds"]

_NS_A_SECOND = 1e9


def first_proof_seconds(
    run: RunDirectory, verdict: Verdict, checks: Collection[str]
) -> float | None:
    """Seconds since the run's clock began; None where no proof of these checks names operations.

    Of the examples that the verdict keeps of each check, which are the first in the history.
    Raises HarnessError if the run's operations cannot be read.
    """
    proofs = [
        example.operations
        for check in verdict.checks
        if check.check in checks and _is_illegal(check)
        for example in check.examples
        if not example.allowed and example.operations
    ]
    if not proofs:
        return None
    indices = {index for proof in proofs for index in proof}
    ends = {
        index: operation.return_ns
        for index, operation in operations_at(table_files(run, "operations"), indices).items()
    }
    complete = [
        max(filter(None, (ends[index] for index in proof)), default=None)
        for proof in proofs
        if all(ends.get(index) is not None for index in proof)
    ]
    return min((at / _NS_A_SECOND for at in complete if at is not None), default=None)


def _is_illegal(check: CheckResult) -> bool:
    return check.validity is Validity.INVALID
