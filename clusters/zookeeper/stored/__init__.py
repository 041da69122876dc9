"""The content of a server's data directory: transactions, snapshots, and the tree they make."""
