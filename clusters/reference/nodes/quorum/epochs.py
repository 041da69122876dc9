"""The reaction of both voters and observers to an epoch that they are told."""

from fencepost.clusters.reference.nodes.rules import Rules


def is_refused(rules: Rules, told: int, *, own: int) -> bool:
    """Return whether a message of the epoch `told` is outdated, and counts no more."""
    # Rule stale_epoch_refused.
    return told < own and rules.stale_epoch_refused
