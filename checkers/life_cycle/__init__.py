"""Checks of brokers as they come and go: their ids, and their right to run."""
