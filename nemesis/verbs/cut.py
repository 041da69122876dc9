"""The connection of a matching frame is cut, after the frame was passed on or before.

- cut: {as: lost, api: AlterPartition, from: broker-1, times: 1}
"""

from fencepost.history.failure import SpecError
from fencepost.nemesis.verbs.rule import Operand, rule_verb
from fencepost.nemesis.wire.rules import Cut


def _action(data: Operand) -> Cut:
    passed_on = data.get("passed_on", True)
    if not isinstance(passed_on, bool):
        raise SpecError(("passed_on",), f"expected true or false, found {passed_on!r}")
    return Cut(passed_on=passed_on)


VERBS = (
    rule_verb(
        "cut",
        ("cut: {as: r, api: Fetch, from: broker-1}",),
        Cut,
        _action,
        own=("passed_on",),
        own_data=lambda action: {} if action.passed_on else {"passed_on": False},
    ),
)
