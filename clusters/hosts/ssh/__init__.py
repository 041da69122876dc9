"""Nodes on machines of the user's, reached over SSH; nothing is installed there."""
