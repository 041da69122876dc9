"""Clusters whose nodes are processes, whatever they run and wherever they run it."""
