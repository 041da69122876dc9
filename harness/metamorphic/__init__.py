"""Stored runs, changed in ways that no verdict may mistake for a fault of the cluster."""
