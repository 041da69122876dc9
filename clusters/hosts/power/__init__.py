"""Loss of power without root: the syncs of processes are recorded, and all else is undone."""
