"""Ensembles of Apache ZooKeeper: servers that keep one tree of znodes, and elect a leader."""
