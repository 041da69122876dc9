"""The ZooKeeper generation of the reference cluster: brokers, of which one is the controller."""
