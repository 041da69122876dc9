"""The next matching request of the same link overtakes this one, on another connection."""

from fencepost.nemesis.verbs.rule import rule_verb
from fencepost.nemesis.wire.rules import Reorder

VERBS = (
    rule_verb(
        "reorder",
        ("reorder: {as: r, api: Fetch, from: broker-1}",),
        Reorder,
        lambda _data: Reorder(),
        requests_only=True,
    ),
)
