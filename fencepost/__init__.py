"""Fencepost: break a cluster while clients use it, and prove what it kept and what it lost."""
