"""Matching requests are answered by the proxy, with an error, and never reach their target.

- answer: {as: no, api: AlterPartition, with: NOT_CONTROLLER}
"""

from fencepost.history.failure import SpecError
from fencepost.nemesis.verbs.rule import Operand, rule_verb
from fencepost.nemesis.wire.rules import Answer
from fencepost.nemesis.words import did_you_mean


def _action(data: Operand) -> Answer:
    from fencepost.nemesis.wire.error_codes import error_names  # noqa: PLC0415  # it takes a while

    names = error_names()
    name = str(data.get("with"))
    if name not in names:
        raise SpecError(("with",), f"unknown error {name!r}; {did_you_mean(name, names)}")
    return Answer(error=name)


VERBS = (
    rule_verb(
        "answer",
        ("answer: {as: r, api: Fetch, from: broker-1, with: NOT_LEADER_OR_FOLLOWER}",),
        Answer,
        _action,
        own=("with",),
        own_data=lambda action: {"with": action.error},
        requests_only=True,
    ),
)
