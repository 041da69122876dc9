"""What both voters and observers make of an epoch that they are told."""

from clusters.reference.nodes.rules import Rules

__all__ = ["is_refused"]


def is_refused(rules: Rules, told: int, *, own: int) -> bool:
    """Whether a message of the epoch `told` is of a time gone by, and counts no more."""
    # Rule stale_epoch_refused.
    return told < own and rules.stale_epoch_refused
