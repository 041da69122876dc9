"""The workloads: what clients do while faults are injected, and how they record it."""
