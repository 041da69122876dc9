"""Where a node runs: as a local process."""
