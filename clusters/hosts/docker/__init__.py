"""Nodes in containers of a Docker daemon of this machine."""
