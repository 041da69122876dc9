"""Fault schedules as values: a small algebra, and the schedules that are written in it."""
