"""Checks of the metadata that brokers show, against what was written and shown before."""
