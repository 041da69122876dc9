"""Matching requests are answered by the proxy, with an error, and never reach their target.

- answer: {as: no, api: AlterPartition, with: NOT_CONTROLLER}
"""

from kio.schema.errors import ErrorCode

from history.failure import SpecError
from nemesis.verbs.rule import Operand, rule_verb
from nemesis.wire.rules import Answer
from nemesis.words import did_you_mean

__all__ = ["VERBS"]


def _action(data: Operand) -> Answer:
    names = [code.name.upper() for code in ErrorCode]
    name = str(data.get("with"))
    if name not in names:
        raise SpecError(("with",), f"unknown error {name!r}; {did_you_mean(name, names)}")
    return Answer(error=name)


VERBS = (
    rule_verb(
        "answer",
        Answer,
        _action,
        own=("with",),
        own_data=lambda action: {"with": action.error},
        requests_only=True,
    ),
)
