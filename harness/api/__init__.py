"""Fencepost from Python: to carry scenarios out, and to read what runs recorded."""
