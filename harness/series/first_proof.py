"""The earliest time of a visible violation: when what its proof names had happened.

No checker runs while a cluster does, so this is no time of detection: it says how early in the run
an observer with the same operations and frames could have known.
"""

from collections.abc import Collection

from checkers.anomaly import Anomaly
from checkers.verdict import Validity, Verdict
from history.reader import table_files
from history.run_directory import RunDirectory
from report.anomalies import operations_at
from report.frames import frame_ends

__all__ = ["first_proof_seconds"]


def first_proof_seconds(
    run: RunDirectory, verdict: Verdict, checks: Collection[str]
) -> float | None:
    """Return seconds since the run's clock began.

    None where no proof of these checks names operations or frames.

    Of the examples that the verdict keeps of each check, which are the first in the history.
    Raises HarnessError if the run's history cannot be read.
    """
    proofs = [
        example
        for check in verdict.checks
        if check.check in checks and check.validity is Validity.INVALID
        for example in check.examples
        if not example.allowed and (example.operations or example.frames)
    ]
    if not proofs:
        return None
    operations = {index for proof in proofs for index in proof.operations}
    found = operations_at(table_files(run, "operations"), operations)
    returns = {index: found[index].return_ns if index in found else None for index in operations}
    frames = {number for proof in proofs for number in proof.frames}
    passed = frame_ends(table_files(run, "wire"), frames) if frames else {}

    def complete_ns(proof: Anomaly) -> int | None:
        """Return the time at which all that the proof names had ended, or None."""
        ends = [returns[index] for index in proof.operations]
        ends += [passed.get(number) for number in proof.frames]
        known = [end for end in ends if end is not None]
        return max(known) if len(known) == len(ends) else None

    complete = [end for proof in proofs if (end := complete_ns(proof)) is not None]
    return min(complete) / 1e9 if complete else None
