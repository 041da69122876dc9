"""The reference cluster of the ZooKeeper generation in virtual time, and its evidence."""
