"""The cluster of a stored run, started once more and kept running for a time."""
