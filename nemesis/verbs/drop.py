"""A matching frame is not passed on, and its connection is cut."""

from fencepost.nemesis.verbs.rule import rule_verb
from fencepost.nemesis.wire.rules import Drop

VERBS = (
    rule_verb(
        "drop",
        ("drop: {as: r, api: Fetch, from: broker-1}",),
        Drop,
        lambda _data: Drop(),
        tones=("#b3439c", "#e07fce"),
    ),
)
