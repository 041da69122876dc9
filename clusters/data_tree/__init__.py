"""ZooKeeper's data tree: transactions, what they make of it, and how a leader decides requests."""
