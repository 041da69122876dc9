"""Runs in virtual time: the world's clock, observations of its cluster, and stored evidence."""
