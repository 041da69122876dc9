"""Checks of records: a partition is a log, on which its sends and polls must agree."""
