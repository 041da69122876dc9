"""Series of runs: rates, the track record, and claims with their records."""
