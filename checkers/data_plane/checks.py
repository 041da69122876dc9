"""The checks of the data plane by their catalogue names, and the assumptions they make of a key."""

from collections.abc import Callable, Mapping
from typing import Final

from checkers.anomaly import Found
from checkers.data_plane.aborted_reads import aborted_reads
from checkers.data_plane.internal_poll_order import (
    internal_nonmonotonic_polls,
    internal_skipped_polls,
)
from checkers.data_plane.key_assumptions import sent_values, unique_values
from checkers.data_plane.key_log import KeyLog
from checkers.data_plane.lost_writes import lost_writes
from checkers.data_plane.offsets import duplicates, inconsistent_offsets
from checkers.data_plane.poll_order import nonmonotonic_polls, skipped_polls
from checkers.data_plane.send_order import nonmonotonic_sends
from checkers.data_plane.unseen import unseen
from checkers.data_plane.vanished import vanished

__all__ = ["BY_PLACE", "CHECKS", "KEY_ASSUMPTIONS", "Kernel"]

Kernel = Callable[[KeyLog], Found]

KEY_ASSUMPTIONS: Final[Mapping[str, Kernel]] = {
    "unique-values": unique_values,
    "sent-values": sent_values,
}
"""Run first, on the same rows. What a check rests on, the catalogue says (`rests_on`)."""

CHECKS: Final[Mapping[str, Kernel]] = {
    "lost-write": lost_writes,
    "aborted-read": aborted_reads,
    "inconsistent-offset": inconsistent_offsets,
    "duplicate": duplicates,
    "nonmonotonic-poll": nonmonotonic_polls,
    "skipped-poll": skipped_polls,
    "internal-nonmonotonic-poll": internal_nonmonotonic_polls,
    "internal-skipped-poll": internal_skipped_polls,
    "nonmonotonic-send": nonmonotonic_sends,
    "unseen": unseen,
    "vanished": vanished,
}
"""In the order of the catalogue."""

BY_PLACE: Final = frozenset(
    (
        "inconsistent-offset",
        "nonmonotonic-poll",
        "skipped-poll",
        "internal-nonmonotonic-poll",
        "internal-skipped-poll",
        "nonmonotonic-send",
    )
)
"""Those that compare a record with what stands at its offset or comes before it; the others, and
the assumptions, compare it with all records of its value (`checkers.data_plane.large.segment`)."""
