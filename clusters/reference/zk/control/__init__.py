"""The controller of the ZooKeeper generation: elected among the brokers, over ZooKeeper."""
