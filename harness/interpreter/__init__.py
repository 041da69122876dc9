"""Drives the faults of a run and keeps its books: the same for real and virtual time."""
