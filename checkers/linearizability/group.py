"""The checks of open histories of objects, as a group of the checker."""

from dataclasses import replace
from typing import Final

from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.entry import Entry, Kind
from checkers.linearizability.model_files import Outline, outline
from checkers.linearizability.sweep import Sweep
from checkers.results import FileAnswers, anomalies_found, result_of
from checkers.verdict import CheckResult, Validity
from checkers.whole_operations import whole_operations
from history.failure import HarnessError
from history.models import Model
from history.schema import RECORD_BUCKET_COUNT

__all__ = ["CHECKS"]

_TABLE: Final = "model_operations"

WHOLE_HISTORY: Final = Entry(
    id="M0",
    name="whole-history",
    title="No operation of an open history is missing",
    kind=Kind.ASSUMPTION,
    rule="Over all keys, the least index is 0 and the greatest is one less than the number of "
    "operations, by the statistics of the files, every one of which could be read. (That a process "
    "has one operation open at a time is not needed, and not compared.)",
    meaning="Otherwise a value without a recorded write may have been written by a lost operation.",
    case="an operation",
    source="history/schema.py, MODEL_OPERATIONS",
    needs=(_TABLE,),
)

NONLINEARIZABLE: Final = Entry(
    id="M1",
    name="nonlinearizable",
    title="No order of the operations explains every answer",
    rule="The operations of a key, each at one moment between its call and its return, ends "
    "included, are compared with what the object of the model does when it is undisturbed "
    "(history/models.py). Crashed operations took effect at any moment after their call, or never. "
    "Versioned registers and logs: by the moments at which versions appear, each made once, by "
    "somebody, with one value; version 0 has none. Others: by a kernel of their own or a search "
    "with a budget of time and memory a key; a key that exceeds it is unknown.",
    meaning="Clients saw what one object, used by one of them at a time, would never have shown.",
    case="an answer that can be wrong: of a read, of a `cas` that was made or refused, or the "
    "version or offset of a change",
    source="Herlihy, Wing 1990; Wing, Gong 1993; Gibbons, Korach 1997; Lowe 2017",
    rests_on=(WHOLE_HISTORY.name,),
    needs=(_TABLE,),
)


def _answer(question: Question) -> GroupAnswers:
    outlines, unreadable = _outlines(question)
    assumed = whole_operations(WHOLE_HISTORY.name, outlines, unreadable)
    sweep = Sweep(
        session=question.session,
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
        NONLINEARIZABLE,
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
        file = question.file(_TABLE, bucket=bucket)
        try:
            found.append(outline(file))
        except HarnessError as error:
            unreadable.append(str(error))
    return found, unreadable


def _counted(result: CheckResult) -> CheckResult:
    """Return the result; if some keys have no answer, its reason says how many have one."""
    count, unknown = (int(result.figures[name]) for name in ("keys_count", "keys_unknown_count"))
    if not unknown:
        return result
    checked = f"{count - unknown} of {count} keys checked"
    return replace(result, reason=f"{checked}; {result.reason}")


CHECKS: Final = (
    CheckGroup(name="linearizability", entries=(WHOLE_HISTORY, NONLINEARIZABLE), answer=_answer),
)
