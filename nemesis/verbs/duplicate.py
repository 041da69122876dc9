"""A matching request is passed on, and again over a connection of its own."""

from fencepost.nemesis.verbs.rule import rule_verb
from fencepost.nemesis.wire.rules import Duplicate

VERBS = (
    rule_verb(
        "duplicate",
        ("duplicate: {as: r, api: Fetch, from: broker-1}",),
        Duplicate,
        lambda _data: Duplicate(),
        requests_only=True,
    ),
)
