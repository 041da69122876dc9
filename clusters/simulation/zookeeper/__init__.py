"""A model of ZooKeeper in virtual time: an ensemble of servers, and the sessions of its clients."""
