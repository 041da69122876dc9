"""Histories that no run of ours recorded: import, export, and synthetic ones."""
