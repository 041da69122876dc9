"""The reference cluster of the ZooKeeper generation: our own brokers on a real ensemble."""
