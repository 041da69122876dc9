"""The border of a node that is sans-IO: what it asks of its shell, and what it is told."""
