"""What lies on the replicas' disks, against each other and against what was acknowledged."""
