"""The client processes, each a small program of its own."""
