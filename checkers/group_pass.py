"""Asking the groups: each for what the run recorded, none able to silence another."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from checkers.anomaly import ANOMALIES
from checkers.check_group import CheckGroup, GroupAnswers, Question
from checkers.verdict import CheckResult, Validity

__all__ = ["group_answers"]

_LOG = logging.getLogger(__name__)


def group_answers(groups: Sequence[CheckGroup], question: Question) -> tuple[GroupAnswers, ...]:
    """Return the answers of the groups that have any of the question's checks, in order."""
    asked = set(question.checks)
    chosen = {
        group.name: tuple(entry.name for entry in group.entries if entry.name in asked)
        for group in groups
    }
    return tuple(
        _answers(group, replace(question, checks=chosen[group.name]))
        for group in groups
        if chosen[group.name]
    )


def _answers(group: CheckGroup, question: Question) -> GroupAnswers:
    try:
        return group.answer(question)
    except Exception as error:  # noqa: BLE001  # whatever it is, only these checks are unknown
        _LOG.exception("the checks of %s crashed", group.name)
        reason = f"the checks of {group.name} crashed: {type(error).__name__}: {error}"
        results = tuple(
            CheckResult(check=name, validity=Validity.UNKNOWN, reason=reason)
            for name in question.checks
        )
        return GroupAnswers(results=results, anomalies=ANOMALIES.empty_table())
