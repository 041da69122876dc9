"""Benchmarks of this machine: figures are printed, and never asserted."""
