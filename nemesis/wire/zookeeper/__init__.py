"""ZooKeeper's three protocols: where their messages begin and end, and what they say."""
