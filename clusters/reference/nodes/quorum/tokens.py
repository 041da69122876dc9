"""The tokens of the quorum's syncs: (QUORUM, what was made durable, …)."""

from typing import Final

__all__ = ["ARRIVED", "QUORUM", "START"]

QUORUM: Final = "quorum"
"""The component whose tokens these are."""
START: Final = "start"
"""(QUORUM, START): what the disk had when the node started.

A log is (QUORUM, METADATA, end offset, generation), a vote (QUORUM, QUORUM_STATE, number), and a
snapshot of one's own (QUORUM, SNAPSHOT, end offset).
"""
ARRIVED: Final = "arrived"
"""(QUORUM, ARRIVED, number): a leader's snapshot."""
