"""The checks of open histories of objects, as a group of the checker."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.linearizability.entries import MODEL_ENTRIES, NONLINEARIZABLE, WHOLE_HISTORY
from checkers.linearizability.model_files import Outline, outline
from checkers.linearizability.sweep import Sweep
from checkers.results import FileAnswers, anomalies_found, result_of
from checkers.runner.tables import cluster_file
from checkers.verdict import CheckResult, Validity
from history.failure import HarnessError
from history.models import Model
from history.schema import RECORD_BUCKET_COUNT

__all__ = ["LINEARIZABILITY"]

_TABLE: Final = "model_operations"


def _answer(question: Question) -> GroupAnswers:
    outlines, unreadable = _outlines(question)
    assumed = _whole(outlines, unreadable)
    sweep = Sweep(
        spark=question.spark,
        model=Model(question.manifest.model),
        outlines=outlines,
        budget_s=question.budget_s,
        unreadable=dict.fromkeys(unreadable),
    )
    findings = sweep.findings()
    files = FileAnswers(
        record_count=sum(one.row_count for one in outlines),
        unreadable=tuple(sweep.unreadable),
        seconds=0.0,
    )
    # A file that cannot be read says so itself: the keys of the others are judged as they stand.
    broken = assumed.validity is not Validity.VALID and not unreadable
    result = result_of(
        NONLINEARIZABLE.name,
        findings,
        files=files,
        broken=frozenset((WHOLE_HISTORY.name,) if broken else ()),
        died="",
    )
    results = (assumed, _counted(result))
    return GroupAnswers(
        results=tuple(one for one in results if one.check in question.checks),
        anomalies=anomalies_found(NONLINEARIZABLE.name, findings),
    )


def _outlines(question: Question) -> tuple[list[Outline], list[str]]:
    found, unreadable = [], []
    for bucket in range(RECORD_BUCKET_COUNT):
        file = cluster_file(question.run, question.manifest, _TABLE, bucket=bucket)
        try:
            found.append(outline(file))
        except HarnessError as error:
            unreadable.append(str(error))
    return found, unreadable


def _whole(outlines: Sequence[Outline], unreadable: Sequence[str]) -> CheckResult:
    count = sum(one.row_count for one in outlines)
    first = min((one.first_index for one in outlines if one.first_index is not None), default=0)
    last = max((one.last_index for one in outlines if one.last_index is not None), default=-1)
    reason = "; ".join(unreadable)
    if not reason and (first != 0 or last != count - 1):
        reason = f"there are {count} operations, and their indices go from {first} to {last}"
    validity = Validity.UNKNOWN if reason else Validity.VALID
    return CheckResult(check=WHOLE_HISTORY.name, validity=validity, case_count=count, reason=reason)


def _counted(result: CheckResult) -> CheckResult:
    """Says of how many keys there is an answer, where some have none."""
    count, unknown = (int(result.figures[name]) for name in ("keys_count", "keys_unknown_count"))
    if not unknown:
        return result
    checked = f"{count - unknown} of {count} keys checked"
    return replace(result, reason=f"{checked}; {result.reason}")


LINEARIZABILITY: Final = CheckGroup(name="linearizability", entries=MODEL_ENTRIES, answer=_answer)
