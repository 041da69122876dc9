"""The next matching request of the same link overtakes this one, on another connection."""

from nemesis.verbs.rule import rule_verb
from nemesis.wire.rules import Reorder

__all__ = ["VERBS"]

VERBS = (rule_verb("reorder", Reorder, lambda _data: Reorder(), requests_only=True),)
