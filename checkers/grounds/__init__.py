"""Assumptions and grounds: whether the run and its history can carry a verdict."""
