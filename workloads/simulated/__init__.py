"""Clients of a simulated cluster: nodes of its world, which record what real ones record."""
