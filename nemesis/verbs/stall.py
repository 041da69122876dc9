"""A matching frame is passed on, and nothing behind it is read: the sender's buffers fill up."""

from fencepost.nemesis.verbs.rule import rule_verb
from fencepost.nemesis.wire.rules import Stall

VERBS = (
    rule_verb(
        "stall", ("stall: {as: r, api: Fetch, from: broker-1}",), Stall, lambda _data: Stall()
    ),
)
