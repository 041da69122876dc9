"""Matching frames are counted, and passed on as they are."""

from fencepost.nemesis.verbs.rule import rule_verb
from fencepost.nemesis.wire.rules import Watch

VERBS = (
    rule_verb(
        "watch",
        ("watch: {as: r, api: Fetch, from: broker-1}",),
        Watch,
        lambda _data: Watch(),
        harmless=True,
    ),
)
