"""Synthetic histories from a seed, correct or with planted anomalies, to test checkers with."""
