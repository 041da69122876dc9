"""A node learns that another one knows an API only up to some version.

- lower_version: {as: old, api: AlterPartition, to_version: 2, to: active controller}
"""

from fencepost.nemesis.verbs.rule import Operand, api_of, count_of, rule_verb
from fencepost.nemesis.wire.rules import Direction, LowerVersion


def _action(data: Operand) -> LowerVersion:
    return LowerVersion(api=api_of(data), max_version=count_of(data, "to_version", minimum=0))


VERBS = (
    rule_verb(
        "lower_version",
        ("lower_version: {as: r, api: Fetch, from: broker-1, to_version: 11}",),
        LowerVersion,
        _action,
        own=("to_version",),
        own_data=lambda action: {"api": action.api, "to_version": action.max_version},
        always=("ApiVersions", Direction.RESPONSE),
    ),
)
