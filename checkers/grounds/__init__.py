"""Checks of the evidence itself: whether a run and its history can carry a verdict."""
