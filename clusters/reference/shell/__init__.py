"""A node as a process: sockets, files and a clock around the sans-IO core."""
