"""Service: what clients got of the cluster, and the bounds of it that a scenario promises."""
