"""Brokers as they come and go: whose id it is, and who may run."""
