"""Checks of the replicas' disks, against each other and against the acknowledged records."""
