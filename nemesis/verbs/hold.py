"""A matching frame, and what follows it on its connection, waits until the rule is lifted."""

from fencepost.nemesis.verbs.rule import rule_verb
from fencepost.nemesis.wire.rules import Hold

VERBS = (
    rule_verb(
        "hold",
        ("hold: {as: r, api: Fetch, from: broker-1}",),
        Hold,
        lambda _data: Hold(),
        tones=("#11857d", "#3fbdb3"),
    ),
)
