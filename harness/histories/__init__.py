"""Histories that no run of ours recorded: imported, exported, made up."""
