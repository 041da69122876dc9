"""The checks of what clients saw of the znodes of a ZooKeeper ensemble."""
