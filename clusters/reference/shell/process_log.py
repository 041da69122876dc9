"""The output of a node's process on standard output: one line a fact, with the time.

In the form of the logs of Kafka's nodes as the harness starts them, so that the same reader finds
the last words of either.
"""

import sys
from datetime import datetime
from typing import Any, Final

from fencepost.clusters.node_port import notes
from fencepost.clusters.protocol.broker_states import BrokerState

_SAID: Final = frozenset(
    (
        notes.ACTIVE,
        notes.BROKER_STATE,
        notes.FOLLOWS,
        notes.LEADS,
        notes.QUORUM_LEADER,
        notes.RESIGNED,
        notes.TRUNCATED,
        notes.VOTED,
    )
)
"""The notes that are rare enough for a log."""


def say(level: str, words: str) -> None:
    """Write a line of the log."""
    now = datetime.now().astimezone().strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3]
    sys.stdout.write(f"{now} [main] {level} {words}\n")
    sys.stdout.flush()


def said_of(note: tuple[Any, ...]) -> str:
    """A note of the node in words; empty if the log does without it."""
    subject = note[1]
    if subject not in _SAID:
        return ""
    if subject == notes.BROKER_STATE:
        return f"broker state {BrokerState(note[2]).name}, broker epoch {note[3]}"
    return " ".join((subject, *(str(one) for one in note[2:])))
