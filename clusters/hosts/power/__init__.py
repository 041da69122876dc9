"""Loss of power without root: what processes had synced is followed, and the rest is undone."""
