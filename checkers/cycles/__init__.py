"""Dependency cycles: whether some order of the transactions explains all that they saw."""
